// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"errors"
	"fmt"
)

// Conditions that callers branch on.
var (
	// ErrNoHook: this program doesn't call Main, so it can't be its own warden.
	ErrNoHook = errors.New("this program doesn't call nest.Main first thing in main, so it can't keep nests")
	// ErrUnsupported: this system has no namespaces, or older ones than are needed.
	ErrUnsupported = errors.New("this system can't keep nests")
	// ErrLost: the nest, or its warden, is dead.
	ErrLost = errors.New("nest lost")
	// ErrClosed: the nest, or its warden, was closed.
	ErrClosed = errors.New("nest closed")
)

// LimitError refuses a limit that can't be enforced on this machine.
type LimitError struct {
	Limit  string // memory, pids, disk
	Reason string
}

func (e *LimitError) Error() string { return fmt.Sprintf("no limit of %s: %s", e.Limit, e.Reason) }

// StartError says that a command could not be started: it, or its directory, is
// missing or can't be used.
type StartError struct {
	Name string // of the program
	Err  error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }
