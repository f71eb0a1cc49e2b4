// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A command that doesn't explain itself is not finished.
func TestEveryCommandExplainsItself(t *testing.T) {
	for _, cmd := range root().Commands() {
		if cmd.Name() == "help" {
			continue
		}
		t.Run(cmd.Name(), func(t *testing.T) {
			if cmd.Short == "" || cmd.Long == "" {
				t.Error("it has no description")
			}
			if !strings.Contains(cmd.Example, "  tidemill "+cmd.Name()) {
				t.Errorf("its examples don't show it: %q", cmd.Example)
			}
			for _, code := range []string{"\nExit status:\n  0  ", "\n  1  ", "\n  2  "} {
				if !strings.Contains(cmd.Long, code) {
					t.Errorf("its help doesn't explain its exit codes; want %q in it", code)
				}
			}
			for line := range strings.Lines(cmd.Long) {
				if n := len([]rune(line)); n > 92 {
					t.Errorf("a line of its help has %d characters: %s", n, line)
				}
			}
			checkFlags(t, cmd)
		})
	}
}

func checkFlags(t *testing.T, cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("--%s has no description", f.Name)
		}
		if f.Name != strings.ToLower(f.Name) || strings.Contains(f.Name, "_") {
			t.Errorf("--%s: want small letters and dashes", f.Name)
		}
	})
}

// The parts of a fleet are programs of their own, with the same flags as the commands.
func TestPartsAreProgramsOfTheirOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("builds three programs; left out with -short")
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "../producer", "../worker", "../aggregator")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for program, command := range map[string]string{"producer": "submit", "worker": "worker", "aggregator": "aggregate"} {
		t.Run(program, func(t *testing.T) {
			help, err := exec.CommandContext(t.Context(), filepath.Join(dir, program), "--help").Output()
			if err != nil {
				t.Fatalf("%s --help: %v", program, err)
			}
			sub, _, err := root().Find([]string{command})
			if err != nil {
				t.Fatal(err)
			}
			sub.Flags().VisitAll(func(f *pflag.Flag) {
				if !strings.Contains(string(help), "--"+f.Name+" ") {
					t.Errorf("%s has no --%s, which tidemill %s has", program, f.Name, command)
				}
			})
			if !strings.Contains(string(help), "Exit status:") || !strings.Contains(string(help), "TIDEMILL_") {
				t.Errorf("the help of %s lacks exit codes or where flags come from:\n%s", program, help)
			}
			out, err := exec.CommandContext(t.Context(), filepath.Join(dir, program), "--version").Output()
			if err != nil || !strings.HasPrefix(string(out), program+" version ") {
				t.Errorf("%s --version: %q, %v", program, out, err)
			}
			// Bad input ends with 2, as everywhere.
			err = exec.CommandContext(t.Context(), filepath.Join(dir, program), "--xyzzy").Run()
			if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 {
				t.Errorf("%s --xyzzy: %v; want exit code 2", program, err)
			}
		})
	}
}
