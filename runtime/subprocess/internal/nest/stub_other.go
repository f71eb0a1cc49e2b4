// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package nest

import (
	"context"
	"os"
	"syscall"
)

// On this system there are no namespaces: no warden can be started, and so nothing else
// here is ever called.

// Main does nothing.
func Main() {}

// Warden is never there.
type Warden struct{}

// Start refuses.
func Start(context.Context, Config) (*Warden, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Warden) Close() error { return nil }

// Lost is never closed.
func (*Warden) Lost() <-chan struct{} { return nil }

// Groups returns none.
func (*Warden) Groups(string) []string { return nil }

// Probe reports that nothing works.
func (*Warden) Probe(context.Context, *View) Report {
	return failed(ErrUnsupported)
}

// Open refuses.
func (*Warden) Open(context.Context, Spec) (*Nest, error) { return nil, ErrUnsupported }

// Nest is never there.
type Nest struct{}

// Dirs returns none.
func (*Nest) Dirs() []*os.File { return nil }

// Init refuses.
func (*Nest) Init() (Init, error) { return Init{}, ErrUnsupported }

// Start refuses.
func (*Nest) Start(Command) (*Process, error) { return nil, ErrUnsupported }

// End refuses.
func (*Nest) End(context.Context) error { return ErrUnsupported }

// Resize refuses.
func (*Nest) Resize(context.Context, int64, int64) error { return ErrUnsupported }

// Alive refuses.
func (*Nest) Alive(context.Context) error { return ErrUnsupported }

// Socket refuses.
func (*Nest) Socket(context.Context) (int, error) { return -1, ErrUnsupported }

// Close does nothing.
func (*Nest) Close(context.Context) error { return nil }

// Process is never there.
type Process struct{}

// Wait refuses.
func (*Process) Wait() (Status, error) { return Status{}, ErrUnsupported }

// Signal refuses.
func (*Process) Signal(context.Context, syscall.Signal) error { return ErrUnsupported }

// Init is never there.
type Init struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	Boot  string `json:"boot"`
}

// Kill has nothing to kill.
func (Init) Kill(context.Context) error { return nil }

// RemoveGroup has nothing to remove.
func RemoveGroup(string) error { return nil }
