// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemill/tidemill/cmd/internal/manpage"
	"github.com/tidemill/tidemill/cmd/internal/version"
)

// Writing the man pages is a test: it needs the commands, and the program doesn't need
// it. make man runs it.
var man = flag.String("man", "", "write the man pages into this directory")

func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if *man != "" {
		dir = *man
	}
	cmd := root()
	names, err := manpage.Write(cmd, dir, manpage.Config{Version: version.String(), Date: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(cmd.Commands()) + 1; len(names) != want {
		t.Errorf("%d pages %q; want %d, one for each command and one for the program", len(names), names, want)
	}
	for _, sub := range cmd.Commands() {
		body, err := os.ReadFile(filepath.Join(dir, "tidemill-"+sub.Name()+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		page := strings.ReplaceAll(string(body), `\-`, "-")
		sub.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, `\fB--`+f.Name+`\fR`) {
				t.Errorf("the page of %s has no --%s", sub.Name(), f.Name)
			}
		})
		if sub.Name() != "help" && !strings.Contains(page, `.SH "EXIT STATUS"`) {
			t.Errorf("the page of %s doesn't explain its exit codes", sub.Name())
		}
	}
	checkPages(t, dir, names)
}

// checkPages lets the system's formatter look at the pages, where there is one.
func checkPages(t *testing.T, dir string, names []string) {
	if _, err := exec.LookPath("mandoc"); err != nil {
		return
	}
	for _, name := range names {
		out, err := exec.CommandContext(t.Context(), "mandoc", "-T", "lint", "-W", "error", filepath.Join(dir, name)).CombinedOutput()
		if err != nil {
			t.Errorf("mandoc %s: %v\n%s", name, err, out)
		}
	}
}
