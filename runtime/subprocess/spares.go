// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// spares keeps the emptied directories of closed sandboxes for the next ones. To make a
// directory can cost more than to start a program: ext4 doesn't give an inode away again for
// minutes after it was freed, and looks at each such one first, so that who makes and removes
// directories all the time waits for what was removed before (recently_deleted in the
// kernel's ialloc.c).
//
// A spare is as good as new, or it isn't taken: what it has to be is in fitness. Directories
// whose inode is a proof of whose they are, the workdir and the side directory, are made anew.
type spares struct {
	root string

	mu    sync.Mutex
	dir   *directory // where they are, locked; nil until the first
	base  string     // its name below the root
	like  fitness    // what a directory has that was just made; set with dir, for good
	names []string
	last  int
	shut  bool

	removals sync.WaitGroup // in dir, without the lock
}

const (
	spareInfix = "@spare-" // with the owner's pid before it
	maxSpares  = 512       // some more than 64 sandboxes have
)

// spareOf tells the directories of spares among the names below the root.
func spareOf(base string) bool { return strings.Contains(base, spareInfix) }

// mkdir makes a directory like [unix.Mkdirat] does with mode 755, of a spare where there is
// one, and opens it.
func (s *spares) mkdir(dir *directory, name string) (*directory, error) {
	if taken := s.take(dir, name); taken != nil {
		return taken, nil
	}
	if err := unix.Mkdirat(dir.fd, name, 0o755); err != nil {
		return nil, &fs.PathError{Op: "mkdir", Path: dir.join(name), Err: err}
	}
	return openStep(dir, name, true)
}

// take puts a spare where it is wanted and looks at it there: after that look nothing is
// done by its name any more.
func (s *spares) take(dir *directory, name string) *directory {
	spare, ok := s.moveOut(dir, name)
	if !ok {
		return nil // mkdir says why
	}
	taken, err := openDirAt(dir, name)
	if err != nil {
		s.reject(dir, name, spare)
		return nil
	}
	if fit, err := s.like.isOf(taken); !fit || err != nil {
		// Something outlived its sandbox and wrote here.
		taken.Close()
		s.reject(dir, name, spare)
		return nil
	}
	_ = renewAt(dir, name)
	return taken
}

// moveOut moves the last spare that there is.
func (s *spares) moveOut(dir *directory, name string) (spare string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.names) - 1
	if last < 0 {
		return "", false
	}
	spare = s.names[last]
	err := renameNew(s.dir, spare, dir, name)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return "", false // it is good for another one
	}
	s.names = s.names[:last]
	return spare, err == nil
}

// reject removes what isn't fit to be a spare. What can't be removed must at least not be
// where a sandbox wants a directory.
func (s *spares) reject(dir *directory, name, spare string) {
	s.mu.Lock()
	if !s.shut && renameNew(dir, name, s.dir, spare) == nil {
		dir, name = s.dir, spare
	}
	s.removals.Add(1)
	defer s.removals.Done()
	s.mu.Unlock() // there may be much in it, and others wait for spares
	_ = removeAt(context.Background(), dir, name)
}

// give takes what it can use of a side directory in which nothing runs any more. What it
// leaves is removed by the caller.
func (s *spares) give(ctx context.Context, side *directory) {
	if !s.wanted() {
		return
	}
	s.giveOne(ctx, side, "logs", "agent", "verifier", "artifacts")
	for _, name := range []string{"input", "tests", tmpName} {
		s.giveOne(ctx, side, name)
	}
}

// giveOne empties a directory, of what is in it to keep first, and keeps it. Whether it is as
// good as new is looked at when it is taken; here only what would take room for nothing is
// left out.
func (s *spares) giveOne(ctx context.Context, from *directory, name string, inside ...string) {
	dir, err := openDirAt(from, name)
	if err != nil {
		return
	}
	defer dir.Close()
	for _, in := range inside {
		s.giveOne(ctx, dir, in)
	}
	if removeInside(ctx, dir) != nil || !s.like.mend(dir) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut || len(s.names) >= maxSpares {
		return
	}
	s.last++
	spare := strconv.Itoa(s.last)
	if renameNew(from, name, s.dir, spare) == nil {
		s.names = append(s.names, spare)
	}
}

// wanted tells whether there is room for more.
func (s *spares) wanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.shut && len(s.names) < maxSpares && s.open() == nil
}

// close removes the spares. None are kept from now on.
func (s *spares) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	s.removals.Wait() // they need dir
	if s.dir == nil {
		return nil
	}
	root, err := openDir(s.root)
	if err == nil {
		err = errors.Join(removeInside(context.Background(), s.dir), unlinkEmpty(root, s.base))
		root.Close()
	}
	unlockSide(s.dir)
	err = errors.Join(err, s.dir.Close())
	s.dir, s.names = nil, nil
	return err
}

// removeDeadSpares removes the spares of processes that ended without doing so.
func removeDeadSpares(root *directory, base string) error {
	dir, err := openDirAt(root, base)
	if err != nil {
		return nil // gone meanwhile, or nothing of ours
	}
	defer dir.Close()
	if free, err := lockSide(dir, unix.LOCK_EX); err != nil || !free {
		return nil // its owner lives
	}
	defer unlockSide(dir)
	return errors.Join(removeInside(context.Background(), dir), unlinkEmpty(root, base))
}
