// SPDX-License-Identifier: Apache-2.0

package runtime

import "context"

// Keeper is an optional ability of a [Sandbox]: to outlive the process that opened it,
// so that a person can look into it.
type Keeper interface {
	// Keep ends the sandbox's processes and gives up its ownership, in the place of
	// Close. What is left is listed with Kept set, and no sweep removes it before its
	// ExpiresAt; [Attacher] goes on with it, Destroy removes it.
	Keep(ctx context.Context) error
}

// Attacher is an optional ability of a [Runtime]: to go on with a kept sandbox.
type Attacher interface {
	// Attach becomes the owner of a kept sandbox. One with a live owner is a
	// [ConflictError], one that is gone is [ErrLost]. It is in the Setup phase. End it with
	// Keep or Close.
	Attach(ctx context.Context, h Handle) (Sandbox, error)
}
