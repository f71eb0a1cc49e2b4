// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

func checkPlace(p runtime.Place) error {
	if p == runtime.Root { // it would be the whole machine's
		return refuse("place", string(p))
	}
	if slices.Contains(runtime.Places, p) {
		return nil
	}
	return &runtime.PathError{Path: string(p), Reason: "is no place"}
}

// openWalk opens a directory by a path, step by step, following no symlink. The
// caller closes it. A step that can't be taken is [runtime.ErrNotExist], or a
// [runtime.PathError] where something else is in the way.
func openWalk(dir *os.File, rel string, force bool) (*os.File, error) {
	at, err := openDirAt(dir, ".")
	if err != nil || rel == "." {
		return at, err
	}
	steps := strings.Split(rel, "/")
	for i, step := range steps {
		next, err := openStep(at, step, force)
		at.Close()
		if err != nil {
			return nil, walkError(path.Join(steps[:i+1]...), err)
		}
		at = next
	}
	return at, nil
}

func openStep(at *os.File, step string, force bool) (*os.File, error) {
	open := openDirAt
	if force {
		open = openForced
	}
	next, err := open(at, step)
	if err == nil {
		return next, nil
	}
	// What opening says about a symlink differs between systems.
	if st, statErr := statAt(at, step); statErr == nil && kindOf(st) == unix.S_IFLNK {
		return nil, unix.ELOOP
	}
	return nil, err
}

func walkError(at string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		return &runtime.PathError{Path: at, Reason: "is a symlink"}
	case errors.Is(err, unix.EXDEV):
		return &runtime.PathError{Path: at, Reason: "is on another mount"}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%s: %w", at, runtime.ErrNotExist)
	}
	return err
}

// openPlace opens a place for reading.
func (s *Sandbox) openPlace(p runtime.Place) (*os.File, error) {
	if p != runtime.Workdir {
		return openWalk(s.side, sidePlaces[p], true)
	}
	if s.onDisk() {
		return reopen(s.work)
	}
	root, err := openDir(s.cfg.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := openForced(root, s.estate.Name)
	if err != nil {
		return nil, err
	}
	return dir, s.mustBe(dir, s.workdirIdentity())
}

// mustBe closes a directory that isn't the one that it should be.
func (s *Sandbox) mustBe(dir *os.File, want identity) error {
	got, err := identityAt(dir, "")
	if err == nil && got != want {
		err = fmt.Errorf("%w: %s was replaced", runtime.ErrLost, dir.Name())
	}
	if err != nil {
		dir.Close()
	}
	return err
}

// openRoot opens a directory as a root to write below, if it is the one that was
// seen: [os.OpenRoot] takes a path.
func (s *Sandbox) openRoot(dir *os.File) (*os.Root, error) {
	want, err := identityAt(dir, "")
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir.Name())
	if err != nil {
		return nil, err
	}
	opened, err := root.Open(".")
	if err == nil {
		err = s.mustBe(opened, want)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, opened.Close()
}

// makePlace makes a place where it is missing, or anew, and opens it for writing.
func (s *Sandbox) makePlace(ctx context.Context, p runtime.Place, fresh bool) (*os.Root, error) {
	if p == runtime.Workdir {
		if fresh {
			return nil, &runtime.PathError{Path: string(p), Reason: "can't be made fresh"}
		}
		dir, err := s.openPlace(p)
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		return s.openRoot(dir)
	}
	parent, base := path.Split(sidePlaces[p])
	parent = path.Clean(parent)
	if parent != "." {
		if err := s.makeParent(ctx, parent, fresh); err != nil {
			return nil, err
		}
	}
	dir, err := openWalk(s.side, parent, true)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if fresh {
		if err := removeAt(ctx, dir, base); err != nil {
			return nil, err
		}
	}
	err = s.spares.mkdir(dir, base)
	if err != nil && (fresh || !errors.Is(err, unix.EEXIST)) {
		return nil, fmt.Errorf("make %s: %w", s.Path(p), err)
	}
	// It is a directory, no symlink, and can be opened.
	place, err := openStep(dir, base, true)
	if err != nil {
		return nil, walkError(sidePlaces[p], err)
	}
	defer place.Close()
	return s.openRoot(place)
}

// dropPlace removes a place, or what a program put there or above it.
func (s *Sandbox) dropPlace(ctx context.Context, p runtime.Place) error {
	if p == runtime.Workdir {
		return &runtime.PathError{Path: string(p), Reason: "can't be removed"}
	}
	parent, base := path.Split(sidePlaces[p])
	parent = path.Clean(parent)
	if parent != "." {
		st, err := statAt(s.side, parent)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case kindOf(st) != unix.S_IFDIR:
			return removeAt(ctx, s.side, parent)
		}
	}
	dir, err := openWalk(s.side, parent, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	return removeAt(ctx, dir, base)
}

// makeParent makes the directory that several places share. What a program put in its
// way goes, if the place is to be fresh.
func (s *Sandbox) makeParent(ctx context.Context, parent string, fresh bool) error {
	dir := s.side
	st, err := statAt(dir, parent)
	if err == nil && kindOf(st) != unix.S_IFDIR {
		if !fresh {
			return &runtime.PathError{Path: parent, Reason: "is not a directory any more"}
		}
		err = errors.Join(removeAt(ctx, dir, parent), fs.ErrNotExist)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.spares.mkdir(dir, parent); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("make %s: %w", parent, err)
		}
		return nil
	}
	return err
}
