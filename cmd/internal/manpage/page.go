// SPDX-License-Identifier: Apache-2.0

// Package manpage writes the help of commands as manual pages.
package manpage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Config is what pages have in common.
type Config struct {
	Version string
	Date    time.Time
}

// Write writes a page for a program and for each of its commands into a directory, and
// returns their names.
func Write(root *cobra.Command, dir string, c Config) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root.InitDefaultHelpCmd()
	var names []string
	for _, cmd := range append([]*cobra.Command{root}, root.Commands()...) {
		if cmd != root && !cmd.IsAvailableCommand() && cmd.Name() != "help" {
			continue
		}
		names = append(names, name(cmd)+".1")
		if err := os.WriteFile(filepath.Join(dir, name(cmd)+".1"), []byte(Page(cmd, c)), 0o644); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// name is what a command's page is called.
func name(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// Page returns the page of a command.
func Page(cmd *cobra.Command, c Config) string {
	cmd.InitDefaultHelpFlag()
	var p page
	p.line(`.TH %s 1 %s %s Tidemill`, quoted(strings.ToUpper(name(cmd))), quoted(c.Date.UTC().Format(time.DateOnly)),
		quoted("tidemill "+c.Version))
	p.section("NAME")
	p.line(`%s \- %s`, text(name(cmd)), text(cmd.Short))
	p.section("SYNOPSIS")
	p.line(`.B %s`, text(cmd.UseLine()))
	p.help(cmd.Long)
	p.flags("OPTIONS", cmd.NonInheritedFlags())
	p.flags("OPTIONS OF EVERY COMMAND", cmd.InheritedFlags())
	if cmd.Example != "" {
		p.section("EXAMPLES")
		p.block(strings.Split(cmd.Example, "\n"))
	}
	p.seeAlso(cmd)
	return p.b.String()
}

// page is one in the making.
type page struct{ b strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

func (p *page) section(title string) { p.line(".SH %s", quoted(title)) }

// help writes a command's help: its paragraphs, its indented lines as they stand, and its
// exit codes as a section of their own.
func (p *page) help(long string) {
	p.section("DESCRIPTION")
	var block []string
	for line := range strings.SplitSeq(strings.TrimSpace(long), "\n") {
		if strings.HasPrefix(line, "  ") {
			block = append(block, line)
			continue
		}
		p.block(block)
		block = nil
		switch line {
		case "":
			p.line(".PP")
		case "Exit status:":
			p.section("EXIT STATUS")
		default:
			p.line("%s", text(line))
		}
	}
	p.block(block)
}

// block writes lines as they stand.
func (p *page) block(lines []string) {
	if len(lines) == 0 {
		return
	}
	p.line(".PP\n.nf\n.RS")
	for _, line := range lines {
		p.line("%s", text(strings.TrimPrefix(line, "  ")))
	}
	p.line(".RE\n.fi")
}

func (p *page) flags(title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	p.section(title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		head := `\fB` + text("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			head = `\fB` + text("-"+f.Shorthand) + `\fR, ` + head
		}
		if value != "" {
			head += ` \fI` + text(value) + `\fR`
		}
		if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && !strings.Contains(usage, "(default") {
			usage += " (default " + d + ")"
		}
		p.line(".TP\n%s\n%s", head, text(usage))
	})
}

func (p *page) seeAlso(cmd *cobra.Command) {
	var names []string
	if parent := cmd.Parent(); parent != nil {
		names = append(names, name(parent))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, name(sub))
		}
	}
	if len(names) == 0 {
		return
	}
	p.section("SEE ALSO")
	for i, n := range names {
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		p.line(`.BR %s (1)%s`, text(n), end)
	}
}

// text is a line that means nothing else to the formatter.
func text(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}

// quoted is an argument of a macro.
func quoted(arg string) string { return `"` + strings.ReplaceAll(text(arg), `"`, `""`) + `"` }
