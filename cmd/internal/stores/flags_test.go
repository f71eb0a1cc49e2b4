// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
)

// What is said closest by counts: the command line goes before variables.
func TestWhere(t *testing.T) {
	for _, c := range []struct {
		name        string
		store, data string // variables
		args        []string
		want        string
	}{
		{"nothing", "", "", nil, local.DefaultDir},
		{"a variable", "s3://b", "", nil, "s3://b"},
		{"both variables", "s3://b", "here", nil, "s3://b"},
		{"a data directory on the command line", "s3://b", "", []string{"--data", "here"}, "here"},
		{"a store on the command line", "", "here", []string{"--store", "s3://b"}, "s3://b"},
		{"both on the command line", "", "", []string{"--store", "s3://b", "--data", "here"}, "s3://b"},
		{"only a directory", "", "here", nil, "here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(app.EnvName("store"), c.store)
			t.Setenv(app.EnvName("data"), c.data)
			if c.data == "" {
				t.Setenv(app.EnvName("data"), local.DefaultDir)
			}
			var f Flags
			cmd := &cobra.Command{Use: "x", PersistentPreRunE: app.FillFlags, RunE: func(*cobra.Command, []string) error { return nil }}
			f.Register(cmd)
			cmd.SetArgs(c.args)
			if err := cmd.Execute(); err != nil {
				t.Fatal(err)
			}
			if got := f.Where(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
