// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

const (
	removeBatch = 1024
	// removeDepth bounds the descriptors that are open at once; what is deeper is
	// moved up and removed from there.
	removeDepth = 64
	// removeFailures is how many entries may fail before the rest is given up.
	removeFailures = 20
)

// remover removes trees that programs made to be hard to remove: without permissions,
// endlessly deep, with symlinks and mounts inside. It follows neither.
type remover struct {
	ctx    context.Context
	top    *directory
	moved  int
	failed []error
}

// removeInside removes what is in a directory, except for some entries.
func removeInside(ctx context.Context, dir *directory, keep ...string) error {
	r := &remover{ctx: ctx, top: dir}
	r.inside(dir, 0, keep)
	return errors.Join(r.failed...)
}

// removeAt removes an entry of a directory with all that is below it.
func removeAt(ctx context.Context, dir *directory, name string) error {
	r := &remover{ctx: ctx, top: dir}
	err := r.unlink(dir, name, unix.AT_REMOVEDIR) // mostly it is one, and often an empty one
	if errors.Is(err, unix.ENOTDIR) {
		err = r.unlink(dir, name, 0)
	}
	if err == nil {
		return nil
	}
	sub, err := openForced(dir, name)
	if err != nil { // not a directory, or one that can only be removed when empty
		r.entry(dir, name, removeDepth)
		return errors.Join(r.failed...)
	}
	defer sub.Close()
	if err := removeInside(ctx, sub); err != nil {
		return err
	}
	if err := r.unlink(dir, name, unix.AT_REMOVEDIR); err != nil {
		r.fail(dir, name, err)
	}
	return errors.Join(r.failed...)
}

func (r *remover) fail(dir *directory, name string, err error) bool {
	var named *fs.PathError
	if !errors.As(err, &named) {
		err = fmt.Errorf("%s: %w", dir.join(name), err)
	}
	r.failed = append(r.failed, fmt.Errorf("can't remove %w", err))
	return false
}

func (r *remover) done() bool { return len(r.failed) >= removeFailures || r.ctx.Err() != nil }

// inside reads a directory with more names than fit into one batch from its start
// again as long as that helps: what a file system lists after deletions is its own
// affair. The same where directories have been moved to the top meanwhile.
func (r *remover) inside(dir *directory, depth int, keep []string) {
	for again := true; again; {
		again = false
		moved := r.moved
		if err := dir.rewind(); err != nil {
			r.fail(dir, "", err)
			return
		}
		for more := true; more; {
			var names []string
			names, more, _ = dir.names(removeBatch)
			for _, name := range names {
				if r.done() {
					if r.ctx.Err() != nil {
						r.fail(dir, name, context.Cause(r.ctx))
					}
					return
				}
				if !slices.Contains(keep, name) && r.entry(dir, name, depth) && more {
					again = true
				}
			}
		}
		if len(r.failed) > 0 {
			return
		}
		again = again || r.moved > moved && dir == r.top
	}
}

// entry returns whether it is gone.
func (r *remover) entry(dir *directory, name string, depth int) bool {
	err := r.unlink(dir, name, 0)
	if err == nil {
		return true
	}
	st, statErr := statAt(dir, name)
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		return true
	case statErr != nil:
		return r.fail(dir, name, statErr)
	case kindOf(st) != unix.S_IFDIR:
		return r.fail(dir, name, err)
	}
	if err = r.unlink(dir, name, unix.AT_REMOVEDIR); err == nil {
		return true
	}
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return r.fail(dir, name, err)
	}
	if depth == removeDepth {
		return r.moveUp(dir, name)
	}
	sub, err := openForced(dir, name)
	if err != nil {
		return r.fail(dir, name, err)
	}
	before := len(r.failed)
	r.inside(sub, depth+1, nil)
	sub.Close()
	if len(r.failed) > before {
		return false
	}
	if err := r.unlink(dir, name, unix.AT_REMOVEDIR); err != nil {
		return r.fail(dir, name, err)
	}
	return true
}

// unlink removes one entry. Where the directory is write-protected, it no longer is.
func (r *remover) unlink(dir *directory, name string, flags int) error {
	fd := dir.fd
	err := unix.Unlinkat(fd, name, flags)
	if errors.Is(err, unix.EACCES) && unix.Fchmod(fd, 0o700) == nil {
		err = unix.Unlinkat(fd, name, flags)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func (r *remover) moveUp(dir *directory, name string) bool {
	r.moved++
	to := fmt.Sprintf("deep-%d-%s", r.moved, runtime.NewName())
	move := func() error { return unix.Renameat(dir.fd, name, r.top.fd, to) }
	err := move()
	if errors.Is(err, unix.EACCES) { // a directory that is moved is written to
		_ = chmodAt(dir, name, 0o700)
		_ = unix.Fchmod(dir.fd, 0o700)
		err = move()
	}
	if err != nil {
		return r.fail(dir, name, err)
	}
	return true
}
