// SPDX-License-Identifier: Apache-2.0

package tidemill_test

// A rule that can't fail is no rule. Each checker is shown something bad here, and
// something good that looks like it.

import (
	"os"
	"strings"
	"testing"
)

const licence = "// SPDX-License-Identifier: Apache-2.0\n\n"

func TestCheckersCanFail(t *testing.T) {
	allowed := map[string]string{"a Must": "can't happen"}
	prints := func(f file) []string { return printsAndPanics(f, allowed) }
	comments := func(f file) []string { return packageComments([]file{f}) }
	away := func(f file) []string { return outsiders(f, []string{"/checkout/beside/"}) }

	for _, c := range []struct {
		name  string
		check func(file) []string
		path  string
		body  string
		want  string // part of the only complaint; empty: none
	}{
		{"a source file without a licence", licenceLine, "a/b.go", "package a\n", "SPDX"},
		{"a licence far down", licenceLine, "a/b.go", "package a\n\n\n" + licence, "SPDX"},
		{"a script without a licence", licenceLine, ".ci/run", "#!/bin/sh\necho\n", "SPDX"},
		{"a script with one", licenceLine, ".ci/run", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n", ""},
		{"a page needs none", licenceLine, "README.md", "# Hello\n", ""},

		{"501 lines", fileLength, "a/b.go", strings.Repeat("\n", 501), "501 lines"},
		{"500 lines", fileLength, "a/b.go", strings.Repeat("\n", 500), ""},
		{"a long test", fileLength, "a/b_test.go", strings.Repeat("\n", 900), ""},

		{"a package without a comment", comments, "a/b.go", licence + "package a\n", "0 package comments"},
		{"the licence as the comment", comments, "a/b.go", "// SPDX-License-Identifier: Apache-2.0\npackage a\n", "SPDX"},
		{"a comment about something else", comments, "a/b.go", licence + "// Helpers.\npackage a\n", "Helpers."},
		{"a proper comment", comments, "a/b.go", licence + "// Package a is.\npackage a\n", ""},
		{"a proper command", comments, "cmd/mill/main.go", licence + "// Mill runs.\npackage main\n", ""},
		{"a command called something else", comments, "cmd/mill/main.go", licence + "// Main runs.\npackage main\n", "want \"Mill \""},

		{"a library that prints", prints, "a/b.go", "package a\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", "fmt.Println in f"},
		{"a library that exits", prints, "a/b.go", "package a\nimport \"os\"\nfunc f() { os.Exit(1) }\n", "os.Exit in f"},
		{"a global logger", prints, "a/b.go", "package a\nimport _ \"log\"\n", "imports log"},
		{"a panic in a closure", prints, "a/b.go", "package a\nvar f = func() { panic(1) }\n", "panic in f"},
		{"a panic with a reason", prints, "a/b.go", "package a\nfunc Must() { panic(1) }\n", ""},
		{"a command that prints", prints, "cmd/a/b.go", "package main\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", ""},
		{"printing into something", prints, "a/b.go", "package a\nimport \"fmt\"\nfunc f() { fmt.Fprintln(nil) }\n", ""},

		{"a test that sleeps", sleeps, "a/b_test.go", "package a\nimport \"time\"\nfunc f() {\n\ttime.Sleep(1)\n}\n", "without a reason"},
		{"a suite that sleeps", sleeps, "queue/queuetest/a.go", "package queuetest\nimport \"time\"\nfunc f() {\n\ttime.Sleep(1)\n}\n", "without a reason"},
		{"a sleep in a bubble", sleeps, "a/b_test.go", "package a\nfunc f() {\n\tsynctest.Test(t, func() {\n\t\ttime.Sleep(1)\n\t})\n}\n", ""},
		{"a sleep with a reason", sleeps, "a/b_test.go", "package a\nimport \"time\"\nfunc f() {\n\t// The kernel tells nobody.\n\ttime.Sleep(1)\n}\n", ""},

		{"the standard runtime under its name", goruntime, "a/b.go", "package a\nimport _ \"runtime\"\n", "goruntime"},
		{"the standard runtime renamed", goruntime, "a/b.go", "package a\nimport goruntime \"runtime\"\n", ""},
		{"a package below it", goruntime, "a/b.go", "package a\nimport \"runtime/debug\"\n", ""},

		{"somebody's home", away, "a.md", "see /ho" + "me/anna/x\n", "belongs to one machine"},
		{"a neighbour of the checkout", away, "a.md", "see /checkout/beside/x\n", "path of this machine"},
		{"a mark of other people's data", away, "a.jsonl", "CAN" + "ARY GUID 1\n", "other people's data"},
		{"a path that every machine has", away, "a.md", "see /usr/bin/env\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, c.check(file{c.path, []byte(c.body)}), c.want) })
	}
}

func TestTwoPackageCommentsAreTooMany(t *testing.T) {
	got := packageComments([]file{
		{"a/a.go", []byte("// Package a is.\npackage a\n")},
		{"a/b.go", []byte("// Package a is too.\npackage a\n")},
		{"a/c_test.go", []byte("// Package a in tests.\npackage a\n")},
	})
	expect(t, got, "2 package comments [a/a.go a/b.go]")
}

func TestModuleCheckerCanFail(t *testing.T) {
	expect(t, plainModule("go.mod", []byte(`{"Go":"1.26.8"}`)), "")
	expect(t, plainModule("go.mod", []byte(`{"Go":"1.20"}`)), "go 1.20")
	expect(t, plainModule("go.mod", []byte(`{"Go":"1.26.8","Replace":[{"Old":{"Path":"example.com/x"}}]}`)), "replace of example.com/x")
}

func TestFencesCanFail(t *testing.T) {
	for _, c := range []struct {
		fence string
		from  string
		to    string // "/x" is ours
		ok    bool
	}{
		{"nouns import nothing of ours", "queue", "/bundle", false},
		{"nouns import nothing of ours", "queue", "fmt", true},
		{"contracts link no SDK", "queue", "github.com/nats-io/nats.go", false},
		{"contracts link no SDK", "manifest", "gopkg.in/yaml.v3", true},
		{"contracts link no SDK", "runtime", "gopkg.in/yaml.v3", false},
		{"implementations import only their contract", "queue/natsqueue", "/queue/memqueue", false},
		{"implementations import only their contract", "queue/natsqueue", "/bundle", false},
		{"implementations import only their contract", "queue/natsqueue", "/internal/trial", false},
		{"implementations import only their contract", "queue/natsqueue", "/queue", true},
		{"implementations import only their contract", "queue/natsqueue/embedded", "/queue/natsqueue", true},
		{"implementations import only their contract", "runtime/subprocess", "/runtime/internal/tarball", true},
		{"implementations import only their contract", "runtime/docker/internal/netcheck", "/runtime/docker/internal/boxtool", true},
		{"implementations import only their contract", "runtime/docker/internal/netcheck", "/runtime/subprocess", false},
		{"verbs name no implementation", "internal/worker", "/queue/natsqueue", false},
		{"verbs name no implementation", "internal/worker", "/queue", true},
		{"verbs name no implementation", "internal/worker", "/internal/trial", true},
		{"commands are imported by nobody else", "internal/worker", "/cmd/internal/wiring", false},
		{"commands are imported by nobody else", "cmd/worker", "/cmd/internal/wiring", true},
		{"only natsqueue/embedded imports the NATS server", "queue/natsqueue", "github.com/nats-io/nats-server/v2/server", false},
		{"only natsqueue/embedded imports the NATS server", "queue/natsqueue/embedded", "github.com/nats-io/nats-server/v2/server", true},
		{"only runtime/compose imports the Compose SDK", "runtime/docker", "github.com/docker/compose/v5/pkg/api", false},
		{"only runtime/compose imports the Compose SDK", "runtime/compose", "github.com/compose-spec/compose-go/v2/types", true},
		{"producer and aggregator link neither Docker nor the NATS server", "cmd/producer", "github.com/docker/docker/client", false},
		{"producer and aggregator link neither Docker nor the NATS server", "cmd/aggregator", "github.com/nats-io/nats-server/v2/server", false},
		{"producer and aggregator link neither Docker nor the NATS server", "cmd/tidemill", "github.com/nats-io/nats-server/v2/server", true},
		{"the worker links no NATS server", "cmd/worker", "github.com/nats-io/nats-server/v2/server", false},
		{"production code doesn't import testing", "internal/worker", "testing", false},
		{"production code doesn't import testing", "internal/worker", "/internal/testenv", false},
		{"production code doesn't import testing", "queue/queuetest", "testing", true},
	} {
		t.Run(strings.ReplaceAll(c.from+" to "+c.to, "/", "-"), func(t *testing.T) {
			to := c.to
			if strings.HasPrefix(to, "/") {
				to = module + to
			}
			for _, f := range fences {
				if f.name != c.fence {
					continue
				}
				p := pkg{ImportPath: module + "/" + c.from, Imports: []string{to}, Deps: []string{to}}
				if got := f.check([]pkg{p}); (len(got) == 0) != c.ok {
					t.Errorf("complaints %q; want ok = %v", got, c.ok)
				}
				return
			}
			t.Fatalf("there is no fence %q", c.fence)
		})
	}
}

func TestLinkCheckerCanFail(t *testing.T) {
	pages := map[string][]byte{"docs/b.md": []byte("# Trial ids, and more\n```\n# not a heading\n```\n")}
	exists := func(p string) bool { return p == "docs/b.md" || p == "docs/a.md" }
	for body, want := range map[string]string{
		"[b](b.md)":                        "",
		"[b](../docs/b.md)":                "",
		"[b](b.md#trial-ids-and-more)":     "",
		"[web](https://example.com/b)":     "",
		"`[b](gone.md)`":                   "",
		"```\n[b](gone.md)\n```":           "",
		"[b](gone.md)":                     "docs/a.md:1: link to gone.md",
		"[b](b.md#not-a-heading)":          "no such heading",
		"first\n[b](b.md) and [c](../c/d)": "docs/a.md:2: link to ../c/d",
	} {
		expect(t, links(file{"docs/a.md", []byte(body)}, pages, exists), want)
	}
}

func TestCommandCheckerCanFail(t *testing.T) {
	help := func(sub string) string {
		if sub == "" {
			return "Commands:\n  run         run it\n  status      show it\n"
		}
		return "Flags:\n      --json   as JSON\n"
	}
	for body, want := range map[string]string{
		"```sh\ntidemill run a.yaml --json\n```":    "",
		"say `tidemill status` and see":             "",
		"tidemill frobnicate is prose":              "",
		"the `tidemill` program":                    "",
		"```sh\n$ tidemill frobnicate\n```":         "no command tidemill frobnicate",
		"say\n\n    tidemill frobnicate\n":          "no command tidemill frobnicate",
		"say `tidemill frobnicate`":                 "no command tidemill frobnicate",
		"say `./bin/tidemill run --all a.yaml`":     "tidemill run has no --all",
		"```sh\ntidemill run x && other --all\n```": "",
	} {
		expect(t, commands(file{"a.md", []byte(body)}, help), want)
	}
}

func TestVectorCheckerCanFail(t *testing.T) {
	rows, complaints := trialVectors([]byte("| `[\"s\",\"r\",\"t\",0]` | `00000000000000000000000000000000` |\n"))
	if rows != 1 {
		t.Errorf("rows = %d; want 1", rows)
	}
	expect(t, complaints, "TrialID says")
}

// expect wants one complaint that has the text in it, or none where it is empty.
func expect(t *testing.T, complaints []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(complaints) > 0:
		t.Errorf("complaints %q; want none", complaints)
	case want != "" && (len(complaints) != 1 || !strings.Contains(complaints[0], want)):
		t.Errorf("complaints %q; want one with %q", complaints, want)
	}
}

func TestOutcomeTableCheckerCanFail(t *testing.T) {
	page, err := os.ReadFile("docs/trial-lifecycle.md")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, outcomeTable(page), "")
	expect(t, outcomeTable([]byte(strings.Replace(string(page), "| agent_done | none | yes |", "| agent_done | none | no |", 1))), "ending graded")
	if got := outcomeTable([]byte(strings.Replace(string(page), "`poisoned`", "`poisonous`", 1))); len(got) != 2 {
		t.Errorf("an unknown row and a missing one: %q; want two complaints", got)
	}
}
