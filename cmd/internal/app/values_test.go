// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// flags is a command whose flags have every type that ours have.
type flags struct {
	Name  string
	Slots int
	JSON  bool
	Drain time.Duration
	Types []string
	Vars  []string
}

// parse runs a command line and returns what its command saw.
func parse(t *testing.T, args ...string) (got flags, err error) {
	t.Helper()
	root := &cobra.Command{Use: "tm", SilenceErrors: true, SilenceUsage: true}
	RegisterShared(root)
	sub := &cobra.Command{Use: "work", RunE: func(*cobra.Command, []string) error { return nil }}
	f := sub.Flags()
	f.StringVar(&got.Name, "name", "default", "")
	f.IntVar(&got.Slots, "slots", 1, "")
	f.BoolVar(&got.JSON, "json", false, "")
	f.DurationVar(&got.Drain, "drain-timeout", time.Second, "")
	f.StringSliceVar(&got.Types, "types", []string{"subprocess"}, "")
	f.StringArrayVar(&got.Vars, "var", nil, "")
	other := &cobra.Command{Use: "other", Run: func(*cobra.Command, []string) {}}
	other.Flags().String("elsewhere", "", "")
	root.AddCommand(sub, other)
	root.SetArgs(append([]string{"work"}, args...))
	err = root.ExecuteContext(t.Context())
	return got, err
}

func config(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestValuesOfFlags(t *testing.T) {
	defaults := flags{Name: "default", Slots: 1, Drain: time.Second, Types: []string{"subprocess"}}
	with := func(change func(*flags)) flags {
		f := defaults
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		args []string
		want flags
	}{
		"defaults": {want: defaults},
		"the command line goes before the variable": {
			env: map[string]string{"TIDEMILL_NAME": "variable"}, args: []string{"--name", "line"},
			want: with(func(f *flags) { f.Name = "line" }),
		},
		"the variable goes before the file": {
			file: "name: file\nslots: 3", env: map[string]string{"TIDEMILL_NAME": "variable"},
			want: with(func(f *flags) { f.Name, f.Slots = "variable", 3 }),
		},
		"the command line goes before the file, with a default's value too": {
			file: "slots: 3", args: []string{"--slots", "1"}, want: defaults,
		},
		"an empty variable is a value": {
			env: map[string]string{"TIDEMILL_NAME": ""}, want: with(func(f *flags) { f.Name = "" }),
		},
		"every type": {
			file: "name: x\nslots: 2\njson: true\ndrain-timeout: 2m\ntypes: [a, b]\nvar: [A=1, 'B=2,3']",
			want: flags{Name: "x", Slots: 2, JSON: true, Drain: 2 * time.Minute, Types: []string{"a", "b"}, Vars: []string{"A=1", "B=2,3"}},
		},
		"one value of a list": {
			file: "types: a\nvar: A=1", want: with(func(f *flags) { f.Types, f.Vars = []string{"a"}, []string{"A=1"} }),
		},
		"dashes are underscores in variables": {
			env:  map[string]string{"TIDEMILL_DRAIN_TIMEOUT": "3s", "TIDEMILL_TYPES": "a,b"},
			want: with(func(f *flags) { f.Drain, f.Types = 3*time.Second, []string{"a", "b"} }),
		},
		"flags of other commands may stand in the file": {file: "elsewhere: x", want: defaults},
		"an empty file":         {file: "", want: defaults},
		"a file of comments":    {file: "# nothing\n", want: defaults},
		"anchors of YAML count": {file: "name: &n x\nvar: *n", want: with(func(f *flags) { f.Name, f.Vars = "x", []string{"x"} })},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			got, err := parse(t, append([]string{"--config", config(t, c.file)}, c.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadValuesOfFlags(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		want string
	}{
		"an unknown key":             {file: "json: true\nslot: 3", want: "config.yaml:2: no command has a flag --slot; did you mean slots?"},
		"a key like no other":        {file: "xyzzy: 3", want: "config.yaml:1: no command has a flag --xyzzy"},
		"the file names itself":      {file: "config: x", want: "config.yaml:1: no command has a flag --config"},
		"a key twice":                {file: "slots: 1\nslots: 2", want: "config.yaml:2: slots is given twice"},
		"a bad number":               {file: "\nslots: many", want: `config.yaml:2: --slots "many": want a whole number`},
		"nothing":                    {file: "slots:", want: "config.yaml:1: slots: want a value or a list of values"},
		"keys and values":            {file: "slots: {a: 1}", want: "config.yaml:1: slots: want a value or a list of values"},
		"a list in a list":           {file: "types: [[a]]", want: "config.yaml:1: types: want a value or a list of values"},
		"a list for one value":       {file: "slots: [1, 2]", want: "config.yaml:1: slots: want one value, got a list of 2"},
		"a list":                     {file: "- slots", want: "config.yaml:1: want a mapping of flag names to values"},
		"no YAML":                    {file: "slots: [", want: "config.yaml: yaml: line 1"},
		"a bad variable":             {env: map[string]string{"TIDEMILL_JSON": "perhaps"}, want: `TIDEMILL_JSON: --json "perhaps": want true or false`},
		"a bad duration":             {env: map[string]string{"TIDEMILL_DRAIN_TIMEOUT": "10"}, want: `TIDEMILL_DRAIN_TIMEOUT: --drain-timeout "10": want a duration`},
		"all bad variables are told": {env: map[string]string{"TIDEMILL_JSON": "x", "TIDEMILL_SLOTS": "y"}, want: "TIDEMILL_JSON: --json \"x\": want true or false\nTIDEMILL_SLOTS"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			_, err := parse(t, "--config", config(t, c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v; want %q in it", err, c.want)
			}
			if code := codeOf(t.Context(), err); code != ExitUsage {
				t.Errorf("exit code %d; want %d", code, ExitUsage)
			}
		})
	}
}

// Whatever stands in a config file, reading it ends with values or with a usage error.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{"slots: 3", "var: [a, b]", "a: &x [1]\nb: *x", "? [a]\n: b", "---\n---\n", "<<: {slots: 1}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := parse(t, "--config", config(t, text))
		if _, ok := errors.AsType[*CodeError](err); err != nil && !ok {
			t.Errorf("%q: %v is no usage error", text, err)
		}
	})
}
