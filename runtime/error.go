// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"fmt"
	"strings"
)

// Conditions that callers branch on. They come wrapped: compare with errors.Is.
var (
	// ErrLost: the sandbox died under us. It is nobody's fault but ours.
	ErrLost = errors.New("sandbox lost")
	// ErrNotExist: no such file in the sandbox.
	ErrNotExist = errors.New("no such file in the sandbox")
	// ErrClosed: the sandbox was closed.
	ErrClosed = errors.New("sandbox closed")
	// ErrTooLarge: a limit of the copy was passed.
	ErrTooLarge = errors.New("larger than the limit")
	// ErrCapacity: the provider has no room now; try again later, uncharged.
	ErrCapacity = errors.New("no capacity now")
)

// Stages of provisioning.
const (
	StageName      = "name"
	StageImage     = "image"
	StageProvision = "provision"
	StageReady     = "await_ready"
	StageReset     = "reset_recipe"
	StagePolicy    = "policy"
)

// ProvisionError is a failed Open: where, why, and what was seen.
type ProvisionError struct {
	Stage    string
	Name     string
	Err      error
	Evidence Evidence
	// Permanent: trying again won't help (an unsupported policy, a bad name).
	Permanent bool
}

func (e *ProvisionError) Error() string {
	return fmt.Sprintf("provision %s: %s: %v", e.Name, e.Stage, e.Err)
}

// Unwrap returns the cause.
func (e *ProvisionError) Unwrap() error { return e.Err }

// ConflictError says that the name has a live owner, who was left untouched.
type ConflictError struct {
	Name string
	// Owner is the handle of the resource that has the name.
	Owner Handle
	// Labels of the owner, as far as they could be read.
	Labels Labels
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("name %s is taken by %s %s", e.Name, e.Owner.Kind, e.Owner.ID)
}

// StartError says that a program could not be started: it isn't there, isn't
// executable, or its directory is missing. That is the task's fault.
type StartError struct {
	Argv []string
	Err  error
}

func (e *StartError) Error() string {
	name := ""
	if len(e.Argv) > 0 {
		name = e.Argv[0]
	}
	return fmt.Sprintf("can't start %q: %v", name, e.Err)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// PathError refuses a path that leaves its place, or an entry of a kind that is
// not allowed.
type PathError struct {
	Path   string
	Reason string
}

func (e *PathError) Error() string { return fmt.Sprintf("path %q: %s", e.Path, e.Reason) }

// UnsupportedError refuses what a runtime can't enforce.
type UnsupportedError struct {
	Runtime string
	Feature string // "network_policy", "resources.memory", "user", "image", …
	Value   string
	// Supported lists what is possible instead; may be empty.
	Supported []string
}

func (e *UnsupportedError) Error() string {
	msg := fmt.Sprintf("runtime %s can't enforce %s %s", e.Runtime, e.Feature, e.Value)
	if len(e.Supported) > 0 {
		msg += "; it supports " + strings.Join(e.Supported, ", ")
	}
	return msg
}
