// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestArgumentsAreToldInOurWords(t *testing.T) {
	for _, c := range []struct {
		use   string
		check cobra.PositionalArgs
		args  []string
		want  string
	}{
		{"status [RUN]", cobra.MaximumNArgs(1), []string{"a", "b"}, "status takes at most one RUN; got 2"},
		{"show TRIAL", cobra.ExactArgs(1), nil, "show takes one TRIAL; got none"},
		{"show TRIAL", cobra.ExactArgs(1), []string{"a", "b", "c"}, "show takes one TRIAL; got 3"},
		{"version", cobra.NoArgs, []string{"now"}, `version takes no arguments; got "now"`},
		{"run FILE...", cobra.MinimumNArgs(1), nil, "run takes one FILE or more; got none"},
		{"debug TRIAL COMMAND...", cobra.MinimumNArgs(2), []string{"a"}, `debug takes TRIAL COMMAND...; got "a"`},
		{"run FILE...", Files("run file"), nil, "no run file given"},
		{"status [RUN]", cobra.MaximumNArgs(1), []string{"a"}, ""},
	} {
		err := Args(c.check)(&cobra.Command{Use: c.use, Run: func(*cobra.Command, []string) {}}, c.args)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %q: %q; want %q", c.use, c.args, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"run", "submit", "status", "aggregate", "drain-timeout", "slots", "store"}
	for word, want := range map[string]string{
		"rum":          "run",
		"statsu":       "status",
		"slot":         "slots",
		"agg":          "aggregate", // the beginning of a word
		"drain_timeot": "drain-timeout",
		"xyzzy":        "",
		"x":            "",
		"":             "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest(%q) = %q; want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"abc", "", 3},
		{"", "abc", 3},
		{"abc", "abc", 0},
		{"abc", "abd", 1},
		{"abc", "ab", 1},
		{"kitten", "sitting", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d; want %d", c.a, c.b, got, c.want)
		}
	}
}
