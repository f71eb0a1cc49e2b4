// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"testing"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// Provider is where sandboxes live: a directory, a container engine, an account.
type Provider struct {
	// Runtime returns a new runtime value on this provider: another worker. The
	// suite closes it. Required.
	Runtime func(t *testing.T) runtime.Runtime
	// Left lists, in words, everything of ours that is at the provider now: resources
	// in any state, and processes. mark is in the environment of every command of the
	// suite (see [HostProcesses]). Required.
	Left func(t *testing.T, mark string) []string
	// Abandon opens a sandbox in a worker that then dies without cleaning up, and
	// returns the sandbox's handle. Nil where a crash can't be staged.
	Abandon func(t *testing.T, run runtime.RunSpec, spec runtime.Spec) runtime.Handle
	// ProviderName asks the provider itself what a resource is called: a directory's
	// base name, a container's name. Nil where List is the only one to know.
	ProviderName func(t *testing.T, h runtime.Handle) string
}

// Harness is what an implementation tells the suite about itself. The zero value of
// a field is the strict one.
type Harness struct {
	// Provider returns the provider for one topic; nothing of the suite's is there
	// yet. What the provider itself needs is cleaned up with t.Cleanup. Required.
	Provider func(t *testing.T) Provider
	// Programs runs inside the sandboxes. Default: Shell{}.
	Programs Programs
	// RunSpec and Spec are what every topic starts from: an image, a runner service.
	// The suite adds names, labels, environment, and full_internet where Network is
	// empty.
	RunSpec runtime.RunSpec
	Spec    runtime.Spec
	// Users are two ordinary users that exist inside, where Properties has Users.
	Users [2]string
	// Env names variables that the runtime gives to commands beyond the usual ones
	// (PATH, HOME, PWD, …). A trailing "*" stands for any ending.
	Env []string
	// Failing are ways to make Open fail that only this runtime knows.
	Failing []Failing
	// Special puts a socket, and whatever else is no file, into a directory of the
	// workdir, and returns the names. Nil: a fifo made by Programs is all.
	Special func(t *testing.T, sb runtime.Sandbox, dir string) []string
	// NoSignalNames: the provider tells a death by signal only by its exit code.
	NoSignalNames bool
	// TextOnly: arguments and environment are valid UTF-8, because the provider's API
	// carries nothing else. The suite then checks that other bytes are refused and not
	// changed.
	TextOnly bool
	// NoFetch: no program inside can make an HTTP request.
	NoFetch bool
	// TakesOver: Open itself replaces what a dead owner left, because it can prove the
	// death on the spot. Without it such a name is a conflict until the resource was
	// destroyed by its handle.
	TakesOver bool
	// Patience turns a hang into a failure. Default: a minute.
	Patience time.Duration
}

// Failing is one way to make Open fail.
type Failing struct {
	Name string
	Edit func(*runtime.Spec)
	// Stage that the error names; empty accepts any.
	Stage string
}
