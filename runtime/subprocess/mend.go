// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// mendWorkdir makes the workdir anew where the sandbox's own programs removed or replaced
// it. Who destroys a sandbox takes its side directory first, so with that in place it was
// nobody else, and what a program does to its own workdir is its result: it must not look
// like a sandbox that was lost.
func (s *Sandbox) mendWorkdir() error {
	s.workdir.Lock()
	defer s.workdir.Unlock()
	e := s.estate
	path := s.workPath
	same, err := isIdentity(nil, path, e.Workdir)
	if err != nil || same {
		return err
	}
	if s.nest != nil {
		// Mounted in the nest it can't be removed there.
		return fmt.Errorf("sandbox %s: %w: %s was removed or replaced", e.Name, runtime.ErrLost, path)
	}
	root, err := openDir(s.cfg.Root)
	if err != nil {
		return fmt.Errorf("sandbox %s: %w", e.Name, err)
	}
	defer root.Close()
	if err := e.remake(root); err != nil {
		return fmt.Errorf("sandbox %s: its workdir is gone and can't be made anew: %w", e.Name, err)
	}
	return nil
}

// remake puts an empty directory in the place of whatever has the workdir's name.
func (e *estate) remake(root *directory) error {
	if err := removeAt(context.Background(), root, e.Name); err != nil && exists(root, e.Name) {
		return err
	}
	if err := unix.Mkdirat(root.fd, e.Name, 0o755); err != nil {
		return err
	}
	work, err := openDirAt(root, e.Name)
	if err != nil {
		return err
	}
	id, err := identityAt(work, "")
	if err != nil {
		work.Close()
		return err
	}
	if e.work != nil {
		e.work.Close()
	}
	e.work, e.Workdir = work, id
	return e.record.rewrite(e.lock)
}

// workdirIdentity is what the workdir is known by now.
func (s *Sandbox) workdirIdentity() identity {
	s.workdir.Lock()
	defer s.workdir.Unlock()
	return s.estate.Workdir
}

func exists(root *directory, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(root.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}
