// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// takeLog says where a file of the log directories goes in the bundle:
//
//	agent/x, verifier/x   logs/agent/x, logs/verifier/x
//	artifacts/x           artifacts/x
//	anything else         logs/files/x
//
// and in a task of several steps below steps/<step>/ in logs and artifacts. Files whose
// content is in a record go nowhere. No two files meet, whatever a program calls them,
// nor does one meet a file of ours (what is collected from elsewhere goes to
// artifacts/collected, what the workdir has to artifacts/workdir): first segments that we
// use ourselves are put one level down.
func (a *attempt) takeLog(name string) string {
	// A grader that works on what was collected may read the agent's reports too.
	if a.used[name] && (a.Task.Regrade == "" || !strings.HasPrefix(name, string(runtime.AgentLogs)+"/")) {
		return ""
	}
	steps, ours := a.stepDir(), []string{"artifacts", collectedDir}
	if steps == "" {
		ours = append(ours, "workdir", "steps")
	}
	top, rest, below := strings.Cut(name, "/")
	switch {
	case below && top == string(runtime.Artifacts):
		if first, _, _ := strings.Cut(rest, "/"); slices.Contains(ours, first) {
			rest = "artifacts/" + rest
		}
		return "artifacts/" + steps + rest
	case below && (top == string(runtime.AgentLogs) || top == string(runtime.Verdict)):
		return "logs/" + steps + name
	default:
		return "logs/" + steps + "files/" + name
	}
}

// stepDir is the directory of the step in logs and artifacts, with a slash at its end;
// empty for the only step of a task.
func (a *attempt) stepDir() string {
	if len(a.Task.Steps) < 2 {
		return ""
	}
	return "steps/" + a.stepLabel() + "/"
}

// wanted are the globs over the workdir, and which of them found something.
type wanted struct {
	globs []string
	found map[string]bool
}

func newWanted(globs []string) *wanted { return &wanted{globs: globs, found: map[string]bool{}} }

// take says where a file of the workdir goes: the globs choose.
func (w *wanted) take(name string) string {
	dest := ""
	for _, g := range w.globs {
		if chooses(path.Clean(g), name) {
			w.found[g] = true
			dest = "artifacts/workdir/" + name
		}
	}
	return dest
}

// missed returns the globs that chose nothing, each once.
func (w *wanted) missed() []string {
	var missed []string
	for _, g := range w.globs {
		if !w.found[g] {
			w.found[g] = true
			missed = append(missed, g)
		}
	}
	return missed
}

// chooses reports whether a glob names a file, or a directory that it is in.
func chooses(glob, name string) bool {
	for i := range len(name) {
		if name[i] == '/' && manifest.MatchGlob(glob, name[:i]) {
			return true
		}
	}
	return glob == "." || manifest.MatchGlob(glob, name)
}

// globRoots returns the files and directories that need to be read for the globs: what
// stands before the first special character. None is below another.
func globRoots(globs []string) []string {
	var roots []string
	for _, g := range globs {
		root := g
		if i := strings.IndexAny(g, `*?[\`); i >= 0 {
			root = path.Dir(g[:i] + "x")
		}
		roots = append(roots, path.Clean(root))
	}
	slices.Sort(roots)
	roots = slices.Compact(roots)
	return slices.DeleteFunc(slices.Clone(roots), func(r string) bool {
		return slices.ContainsFunc(roots, func(o string) bool {
			return r != o && (o == "." || strings.HasPrefix(r, o+"/"))
		})
	})
}
