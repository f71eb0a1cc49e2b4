// SPDX-License-Identifier: Apache-2.0

// Package version knows which build this is.
package version

import (
	"cmp"
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
)

// version is set by the linker: -X …/cmd/internal/version.version=v1.2.3.
var version string

// String returns the version: what the linker set, else what the Go tool recorded.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(version, "unknown")
	}
	if version != "" {
		return version
	}
	var revision, dirty string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "-dirty"
			}
		}
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "devel" + prefix("-", revision) + dirty
}

func prefix(p, s string) string {
	if s == "" {
		return ""
	}
	return p + s
}

// Command returns the version command.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: "Version prints what this build is, the Go version that built it, and for what machine.\n" +
			app.ExitHelp("printed", "", ""),
		Example: "  tidemill version",
		Args:    app.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "tidemill %s %s %s/%s\n", String(), goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
			return err
		},
	}
}
