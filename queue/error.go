// SPDX-License-Identifier: Apache-2.0

package queue

import "errors"

// Conditions that callers branch on. They come wrapped: compare with errors.Is.
var (
	// ErrLost: the lease is somebody else's, or its job is gone.
	ErrLost = errors.New("lease lost")
	// ErrUnreachable: the broker did not answer in time. The call may have had
	// its effect all the same.
	ErrUnreachable = errors.New("queue unreachable")
	// ErrUnknownRun: no such run is open.
	ErrUnknownRun = errors.New("run is not open in the queue")
	// ErrConflict: the run is open with another pool or class, or the queue
	// belongs to another store.
	ErrConflict = errors.New("queue conflict")
	// ErrInvalid: the caller's argument is wrong; trying again won't help.
	ErrInvalid = errors.New("invalid argument")
	// ErrClosed: this value was closed.
	ErrClosed = errors.New("queue closed")
)
