// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
)

// A command that works in a data directory refuses a store that is named for others, and
// says what named it; who names the directory is not refused.
func TestElsewhere(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "fleet.conf")
	if err := os.WriteFile(conf, []byte("store: s3://b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, variable string
		args           []string
		want           string // what names it; "" where it isn't refused
	}{
		{"nothing", "", nil, ""},
		{"a variable", "s3://b", nil, "TIDEMILL_STORE"},
		{"a variable, and the directory", "s3://b", []string{"--data", "results"}, ""},
		{"the data directory", "results", nil, ""},
		{"the data directory as a URL", "./results/", nil, ""},
		{"another directory", "elsewhere", nil, "TIDEMILL_STORE"},
		{"a config file", "-", []string{"--config", conf}, conf + ":1"},
		{"a config file, and the directory", "-", []string{"--config", conf, "--data", "results"}, ""},
		{"the flag", "", []string{"--store", "s3://b"}, "--store"},
		{"the flag before the variable", "results", []string{"--store", "s3://b"}, "--store"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(app.EnvName("store"), c.variable)
			if c.variable == "-" {
				os.Unsetenv(app.EnvName("store")) // until the end of this test, which set it
			}
			var e Elsewhere
			var data string
			cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
			cmd.Flags().StringVar(&data, "data", "results", "")
			e.Register(cmd)
			app.RegisterShared(cmd)
			cmd.SetArgs(c.args)
			if err := cmd.Execute(); err != nil {
				t.Fatal(err)
			}
			err := e.Refuse("regrade", data)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasSuffix(err.Error(), "; "+c.want+" names another store") {
				t.Errorf("%v; want that %s is named", err, c.want)
			}
		})
	}
}
