// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"os"
	"path"
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
// A spare is as good as new, or it isn't taken: what it has to be is in fit. Directories
// whose inode is a proof of whose they are, the workdir and the side directory, are made anew.
type spares struct {
	root string

	mu    sync.Mutex
	dir   *os.File // where they are, locked; nil until the first
	base  string   // its name below the root
	like  fitness  // what a directory has that was just made in it
	names []string
	last  int
	shut  bool
}

const (
	spareInfix = "@spare-" // with the owner's pid before it
	maxSpares  = 512       // some more than 64 sandboxes have
)

// spareOf tells the directories of spares among the names below the root.
func spareOf(base string) bool { return strings.Contains(base, spareInfix) }

// spareablePlaces are what is taken from a side directory, the deepest first.
var spareablePlaces = []string{"logs/agent", "logs/verifier", "logs/artifacts", "logs", "input", "tests", tmpName}

// mkdir makes a directory like [unix.Mkdirat] does with mode 755, of a spare where there is one.
func (s *spares) mkdir(dir *os.File, name string) error {
	if s.take(dir, name) {
		return nil
	}
	return unix.Mkdirat(int(dir.Fd()), name, 0o755)
}

func (s *spares) take(dir *os.File, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) == 0 {
		return false
	}
	spare := s.names[len(s.names)-1]
	if !s.isFit(s.dir, spare) {
		// Something outlived its sandbox and wrote here.
		s.names = s.names[:len(s.names)-1]
		_ = removeAt(context.Background(), s.dir, spare)
		return false
	}
	if renameNew(s.dir, spare, dir, name) != nil {
		return false // mkdir says why
	}
	s.names = s.names[:len(s.names)-1]
	_ = touchAt(dir, name)
	return true
}

// give takes what it can use of a side directory in which nothing runs any more. What it
// leaves is removed by the caller.
func (s *spares) give(ctx context.Context, side *os.File) {
	for _, place := range spareablePlaces {
		s.giveOne(ctx, side, place)
	}
}

func (s *spares) giveOne(ctx context.Context, side *os.File, place string) {
	mode, ok := s.wanted()
	if !ok {
		return
	}
	parent, name := path.Split(place)
	from, err := openWalk(side, path.Clean(parent), false)
	if err != nil {
		return
	}
	defer from.Close()
	dir, err := openDirAt(from, name)
	if err != nil {
		return
	}
	err = cmpErr(removeInside(ctx, dir), unix.Fchmod(int(dir.Fd()), mode))
	dir.Close()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut || !s.isFit(from, name) {
		return
	}
	s.last++
	spare := strconv.Itoa(s.last)
	if renameNew(from, name, s.dir, spare) == nil {
		s.names = append(s.names, spare)
	}
}

// wanted tells whether there is room for more, and the mode that they have.
func (s *spares) wanted() (mode uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut || len(s.names) >= maxSpares || s.open() != nil {
		return 0, false
	}
	return s.like.mode & 0o7777, true
}

// close removes the spares. None are kept from now on.
func (s *spares) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
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
func removeDeadSpares(root *os.File, base string) error {
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
