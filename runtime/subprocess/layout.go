// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

// Names below the root; see the package comment. Names of sandboxes have no "@".
const (
	sideSuffix = "@side"
	newInfix   = "@new-"
	oldInfix   = "@old-"
	recordName = "owner.json"
	keptName   = "kept.json"
	tmpName    = "tmp"
	workName   = "work" // the workdir, until it is published
)

// Kinds of handles.
const (
	kindWorkdir = "workdir" // a sandbox; the id is the path of its workdir
	kindStaging = "staging" // a sandbox in the making
	kindRemains = "remains" // what is left of a sandbox that was destroyed
)

// sidePlaces is where the places are inside the side directory. The workdir is not.
var sidePlaces = map[runtime.Place]string{
	runtime.Logs:      "logs",
	runtime.AgentLogs: "logs/agent",
	runtime.Verdict:   "logs/verifier",
	runtime.Artifacts: "logs/artifacts",
	runtime.Tests:     "tests",
	runtime.Solution:  "solution",
	runtime.Input:     "input",
}

// sideOf tells the side directories among the names below the root.
func sideOf(base string) (name, kind string, ok bool) {
	if name, ok = strings.CutSuffix(base, sideSuffix); ok {
		return name, kindWorkdir, runtime.CheckName(name) == nil
	}
	if name, _, ok = strings.Cut(base, newInfix); ok {
		return name, kindStaging, runtime.CheckName(name) == nil
	}
	if name, _, ok = strings.Cut(base, oldInfix); ok {
		return name, kindRemains, runtime.CheckName(name) == nil
	}
	return "", "", false
}

// handleID is what a handle calls a side directory: by its workdir, if that has its
// name.
func handleID(root, name, base, kind string) string {
	if kind == kindWorkdir {
		return filepath.Join(root, name)
	}
	return filepath.Join(root, base)
}
