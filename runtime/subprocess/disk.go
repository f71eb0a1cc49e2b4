// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// A disk of a fixed size is a file system in memory that only the nest has mounted: no
// crash leaves it behind. Our way to its files is through descriptors.

// onDisk tells whether the sandbox's files are on a disk of a fixed size, which only its
// nest has mounted.
func (s *Sandbox) onDisk() bool { return s.nestSpec.Disk > 0 }

// openThrough opens a directory that is mounted only in a nest.
func openThrough(dir *os.File) (*directory, error) {
	return openDirAt(&directory{fd: int(dir.Fd()), name: dir.Name()}, ".")
}

// reopen opens a directory once more that is open already, also one that a program made
// unreadable.
func reopen(dir *directory) (*directory, error) {
	again, err := openDirAt(dir, ".")
	if errors.Is(err, fs.ErrPermission) && unix.Fchmod(dir.fd, 0o700) == nil {
		return openDirAt(dir, ".")
	}
	return again, err
}

// makeRoom gives a grader as much disk as the agent had, beside what the agent used of it,
// and takes that back for a further agent. Else an agent that leaves the disk full would
// leave its grader no room for a verdict, and choose to have no score. The disk is in
// memory, so there has to be more of that as well.
func (s *Sandbox) makeRoom(ctx context.Context, grading bool) error {
	if !s.onDisk() || s.roomy == grading {
		return nil
	}
	disk, memory := s.nestSpec.Disk, s.nestSpec.Memory
	if grading {
		if memory > 0 {
			memory += disk
		}
		disk *= 2
	}
	if err := s.nest.Resize(ctx, disk, memory); err != nil {
		return s.lostNest(err)
	}
	s.roomy = grading
	return nil
}

func (s *Sandbox) closeDisk() {
	if !s.onDisk() {
		return
	}
	for _, f := range []*directory{s.work, s.side} {
		if f != nil && f != s.estate.work && f != s.estate.lock {
			f.Close()
		}
	}
}

// unloadDisk copies what is on the disk to where it can stay, when nothing runs any more.
// Owners and whatever isn't a file, a directory or a symlink are lost.
func (s *Sandbox) unloadDisk(ctx context.Context, idle <-chan struct{}) error {
	if err := s.endAll(ctx); err != nil {
		return err
	}
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("calls are still running in it: %w", context.Cause(ctx))
		}
	}
	if err := s.endAll(ctx); err != nil {
		return err
	}
	return errors.Join(pour(ctx, s.work, s.estate.work), pour(ctx, s.side, s.estate.lock, notThePrograms...))
}

// loadDisk puts what unloadDisk took away onto a new disk.
func (s *Sandbox) loadDisk(ctx context.Context) error {
	return errors.Join(pour(ctx, s.estate.work, s.work), pour(ctx, s.estate.lock, s.side, notThePrograms...))
}

// notThePrograms is what they have no business with in the side directory.
var notThePrograms = []string{recordName, keptName, newKeptName, workName}

// pour copies a tree into a directory, over what is there. What is named at its top is
// left out.
func pour(ctx context.Context, from, to *directory, without ...string) error {
	dir, err := openDirAt(from, ".")
	if err != nil {
		return err
	}
	defer dir.Close()
	r, w := io.Pipe()
	packed := make(chan struct{})
	go func() {
		defer close(packed)
		w.CloseWithError(pack(ctx, w, dir, ".", runtime.CopyLimits{}, &report{}))
	}()
	u := &unpacker{top: to, links: true, without: without}
	err = u.unpack(ctx, tar.NewReader(r))
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	r.Close()
	<-packed
	if err != nil {
		return fmt.Errorf("copy %s to %s: %w", from.path(), to.path(), err)
	}
	return nil
}
