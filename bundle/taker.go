// SPDX-License-Identifier: Apache-2.0

package bundle

import "context"

// DirTaker is an optional ability of a [Store] on this machine: to take a directory of
// files as it is, instead of copying what is in them.
type DirTaker interface {
	// TakeDir makes the files of a directory objects below a prefix that ends in "/", as
	// Put does with the bytes of each: all at once, and durable when it returns nil. Paths
	// are those of its files, relative and in the spelling of [LocalPath]; they must be all
	// that it holds. Nothing may be below the prefix yet.
	//
	// Afterwards the directory is gone. After an error it is either where it was, whole, or
	// taken: call again to make sure. [errors.ErrUnsupported] says that it is where it was,
	// and that its files have to be put.
	TakeDir(ctx context.Context, prefix, dir string, paths []string) error
}
