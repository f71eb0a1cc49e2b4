// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"io"
	"net"
)

// Place is a directory with a role. Where it is differs between runtimes; in
// containers it is the Harbor path in brackets.
type Place string

// The places of a sandbox.
const (
	Workdir   Place = "workdir"   // where commands run [the image's or the task's workdir]
	Logs      Place = "logs"      // parent of the next three [/logs]
	AgentLogs Place = "agent"     // what the agent reports: trajectory, usage, status [/logs/agent]
	Verdict   Place = "verifier"  // reward.txt, reward.json [/logs/verifier]
	Artifacts Place = "artifacts" // files to keep [/logs/artifacts]
	Tests     Place = "tests"     // the grader's files, only while grading [/tests]
	Solution  Place = "solution"  // the oracle's files, only for the oracle [/solution]
	Input     Place = "input"     // instruction and row of the task [/input]
)

// Places lists them.
var Places = []Place{Workdir, Logs, AgentLogs, Verdict, Artifacts, Tests, Solution, Input}

// Root is the root of the file system that programs in the runner service see [/]. It is
// for CopyOut alone, to take out what lies in no place; it is not one of [Places], and
// nothing is copied into it. Runtimes without images, whose sandboxes have no file system of
// their own, refuse it with an [UnsupportedError] of the feature "place".
const Root Place = "root"

// CopyOptions steer CopyIn.
type CopyOptions struct {
	// Fresh removes whatever is at the place (a symlink itself, never what it points
	// at) and makes an empty directory first. With a nil stream this is all that is
	// done. Not allowed for the workdir.
	Fresh bool
	// Gone removes whatever is at the place, as Fresh does, and makes nothing in its stead:
	// programs find no such directory until something is copied there. The stream is nil.
	// It goes before Fresh. Not allowed for the workdir.
	Gone bool
	// Under is a directory inside the place, relative, made where it is missing.
	Under string
	// User owns the files, where the runtime has users; "" is the agent's.
	User string
	// Private keeps the place from every user but User, where there are users.
	Private bool
	Limits  CopyLimits
}

// CopyLimits bound a copy. Zero means no limit.
type CopyLimits struct {
	Bytes     int64 // all files together
	FileBytes int64 // one file; larger ones are left out whole
	Entries   int   // files, directories and links together
}

// Skipped is something that a copy left out.
type Skipped struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes,omitempty"`
	Reason string `json:"reason"` // a sentence: "larger than the limit of 10 MiB", "fifo"
}

// Copy is a tar stream on its way out. Read it to the end, then close it.
type Copy struct {
	io.ReadCloser
	// Skipped returns what was left out, up to a cap of the runtime's, and how many
	// entries that were in all. Call it after the stream ended.
	Skipped func() (list []Skipped, total int)
}

// Listener takes connections that programs inside a sandbox make.
type Listener struct {
	net.Listener
	// URL is how programs inside name it: "http://host:port".
	URL string
}
