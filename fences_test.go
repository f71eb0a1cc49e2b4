// SPDX-License-Identifier: Apache-2.0

package tidemill_test

// Who may import whom. The architecture is readable because it is this short; a new
// exception is a decision and wants an ADR.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tidemill/tidemill"

// pkg is a package as go list sees it, test files left out.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
	Module     *struct{ Path string }
}

// local returns the path below the module, "." for its root.
func (p pkg) local() (string, bool) { return localPath(p.ImportPath) }

func localPath(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// fence is one rule about the non-test imports of our packages.
type fence struct {
	name   string
	reason string
	// of selects packages by their path below the module.
	of func(local string) bool
	// linked looks at everything that is linked, not only at direct imports.
	linked bool
	// bad returns whether a package may not have this dependency.
	bad func(local, dep string) bool
}

var nouns = []string{"manifest", "queue", "runtime", "bundle"}

// thirdParty lists what the contracts may link beyond the standard library and its
// golang.org/x neighbours.
var thirdParty = map[string][]string{
	"manifest": {"gopkg.in/yaml.v3", "github.com/klauspost/compress", "github.com/BurntSushi/toml"},
	"bundle":   {"gopkg.in/yaml.v3", "github.com/klauspost/compress"},
}

var fences = []fence{
	{
		name:   "nouns import nothing of ours",
		reason: "contracts are leaves: a change in one can't move another",
		of:     isNoun,
		linked: true,
		bad:    func(_, dep string) bool { _, ours := localPath(dep); return ours },
	},
	{
		name:   "contracts link no SDK",
		reason: "a contract that shows a library's types can have only one implementation",
		of:     isNoun,
		linked: true,
		bad: func(local, dep string) bool {
			return isThirdParty(dep) && !slices.ContainsFunc(thirdParty[local], func(ok string) bool { return within(dep, ok) })
		},
	},
	{
		name:   "implementations import only their contract",
		reason: "two implementations that know each other can't be replaced one at a time",
		of:     func(local string) bool { n := nounOf(local); return n != "" && n != local },
		bad: func(local, dep string) bool {
			d, ours := localPath(dep)
			if !ours {
				return false
			}
			noun := nounOf(local)
			family := d == noun || within(d, noun+"/internal") || implOf(d) == implOf(local)
			return !family
		},
	},
	{
		name:   "verbs name no implementation",
		reason: "what a verb does must hold for every queue, runtime and store",
		of:     func(local string) bool { return within(local, "internal") },
		bad: func(_, dep string) bool {
			d, ours := localPath(dep)
			return ours && !slices.Contains(nouns, d) && !within(d, "internal")
		},
	},
	{
		name:   "commands are imported by nobody else",
		reason: "wiring that a library needs is a library",
		of:     func(local string) bool { return !within(local, "cmd") },
		bad:    func(_, dep string) bool { d, ours := localPath(dep); return ours && within(d, "cmd") },
	},
	{
		name:   "only natsqueue/embedded imports the NATS server",
		reason: "a worker of a fleet should not carry a server that it never starts",
		of:     func(local string) bool { return local != "queue/natsqueue/embedded" },
		bad:    func(_, dep string) bool { return isServer(dep) },
	},
	{
		name:   "only runtime/compose imports the Compose SDK",
		reason: "it brings hundreds of packages, and its types change with every release",
		of:     func(local string) bool { return !within(local, "runtime/compose") },
		bad:    func(_, dep string) bool { return isComposeSDK(dep) },
	},
	{
		name:   "only container runtimes import the Docker SDK",
		reason: "what the rest needs of an engine is in the contract, and tests get theirs from testenv",
		of: func(local string) bool {
			return !within(local, "runtime/docker") && !within(local, "runtime/compose") && local != "internal/testenv"
		},
		bad: func(_, dep string) bool { return isDocker(dep) },
	},
	{
		name:   "producer and aggregator link neither Docker nor the NATS server",
		reason: "they run beside the queue, where no engine is, and are built into small images",
		of:     func(local string) bool { return local == "cmd/producer" || local == "cmd/aggregator" },
		linked: true,
		bad:    func(_, dep string) bool { return isServer(dep) || isDocker(dep) || isComposeSDK(dep) },
	},
	{
		name:   "the worker links no NATS server",
		reason: "the same as above; tidemill is the binary that has everything",
		of:     func(local string) bool { return local == "cmd/worker" },
		linked: true,
		bad:    func(_, dep string) bool { return isServer(dep) },
	},
	{
		name:   "production code doesn't import testing",
		reason: "it registers flags, and what needs it is a test helper in the wrong place",
		of:     func(local string) bool { return !isSuite(local) },
		bad:    func(_, dep string) bool { return dep == "testing" || isSuite(dep) },
	},
}

func TestFences(t *testing.T) {
	packages := list(t)
	for _, f := range fences {
		t.Run(strings.ReplaceAll(f.name, "/", "-"), func(t *testing.T) {
			for _, complaint := range f.check(packages) {
				t.Error(complaint)
			}
		})
	}
}

// check returns a complaint for every import that breaks the rule.
func (f fence) check(packages []pkg) []string {
	var complaints []string
	for _, p := range packages {
		local, ours := p.local()
		if !ours || !f.of(local) {
			continue
		}
		deps := p.Imports
		if f.linked {
			deps = p.Deps
		}
		for _, dep := range deps {
			if f.bad(local, dep) {
				complaints = append(complaints, fmt.Sprintf("%s imports %s, but %s: %s", local, dep, f.name, f.reason))
			}
		}
	}
	return complaints
}

// list asks the go command for our packages, with all that they link.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,Deps,Standard,Module", "./...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var packages []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return packages
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// within reports whether p is dir or below it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func isNoun(local string) bool { return slices.Contains(nouns, local) }

// nounOf returns the contract that a package belongs to, or "".
func nounOf(local string) string {
	top, _, _ := strings.Cut(local, "/")
	if isNoun(top) {
		return top
	}
	return ""
}

// implOf returns the implementation that a package belongs to: a contract's directory
// and the one below it.
func implOf(local string) string {
	parts := strings.SplitN(local, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

func isThirdParty(dep string) bool {
	host, _, _ := strings.Cut(dep, "/")
	_, ours := localPath(dep)
	return !ours && strings.Contains(host, ".") && !within(dep, "golang.org/x")
}

func isServer(dep string) bool { return within(dep, "github.com/nats-io/nats-server/v2") }

func isDocker(dep string) bool {
	return within(dep, "github.com/docker/docker") || within(dep, "github.com/moby/moby") || within(dep, "github.com/docker/cli")
}

func isComposeSDK(dep string) bool {
	return strings.HasPrefix(dep, "github.com/docker/compose/") || strings.HasPrefix(dep, "github.com/compose-spec/compose-go/")
}

// The fences look at names; a package that was renamed would slip through.
func TestFencesKnowTheTree(t *testing.T) {
	var have []string
	for _, p := range list(t) {
		if local, ours := p.local(); ours {
			have = append(have, local)
		}
	}
	want := append([]string{"cmd/producer", "cmd/worker", "cmd/aggregator", "cmd/tidemill", "queue/natsqueue/embedded"}, nouns...)
	for _, w := range want {
		if !slices.Contains(have, w) {
			t.Errorf("no package %s: the fences that name it hold nothing; have %s", w, strings.Join(have, " "))
		}
	}
}
