// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
func openWalk(dir *directory, rel string, force bool) (*directory, error) {
	if rel == "." {
		return openDirAt(dir, ".")
	}
	if at := openPath(dir, rel); at != nil {
		return at, nil
	}
	at := dir
	steps := strings.Split(rel, "/")
	for i, step := range steps {
		next, err := openStep(at, step, force)
		if at != dir {
			at.Close()
		}
		if err != nil {
			return nil, walkError(path.Join(steps[:i+1]...), err)
		}
		at = next
	}
	return at, nil
}

func openStep(at *directory, step string, force bool) (*directory, error) {
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
func (s *Sandbox) openPlace(p runtime.Place) (*directory, error) {
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
func (s *Sandbox) mustBe(dir *directory, want identity) error {
	got, err := identityAt(dir, "")
	if err == nil && got != want {
		err = fmt.Errorf("%w: %s was replaced", runtime.ErrLost, dir.path())
	}
	if err != nil {
		dir.Close()
	}
	return err
}

// makePlace makes a place where it is missing, or anew, and opens it for writing.
func (s *Sandbox) makePlace(ctx context.Context, p runtime.Place, fresh bool) (*directory, error) {
	if p == runtime.Workdir {
		if fresh {
			return nil, &runtime.PathError{Path: string(p), Reason: "can't be made fresh"}
		}
		return s.openPlace(p)
	}
	parent, base := splitPlace(p)
	dir := s.side
	if parent != "." {
		var err error
		if dir, err = s.openParent(ctx, parent, fresh); err != nil {
			return nil, err
		}
		defer dir.Close()
	}
	if !fresh {
		// It is a directory, no symlink, and can be opened.
		place, err := openStep(dir, base, true)
		if err == nil {
			return place, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, walkError(sidePlaces[p], err)
		}
	}
	place, err := s.mkdir(dir, base)
	if errors.Is(err, unix.EEXIST) {
		if fresh {
			if err := removeAt(ctx, dir, base); err != nil {
				return nil, err
			}
			place, err = s.mkdir(dir, base)
		} else if place, err = openStep(dir, base, true); err != nil { // made just now
			return nil, walkError(sidePlaces[p], err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", s.Path(p), err)
	}
	return place, nil
}

// mkdir makes a directory, also in one that a program has write-protected: else it could see
// to it that there is no place for its verdict.
func (s *Sandbox) mkdir(dir *directory, name string) (*directory, error) {
	made, err := s.spares.mkdir(dir, name)
	if errors.Is(err, fs.ErrPermission) && unix.Fchmod(dir.fd, 0o755) == nil {
		return s.spares.mkdir(dir, name)
	}
	return made, err
}

// splitPlace returns the directory that a place shares with others, "." where there is
// none, and its name in that.
func splitPlace(p runtime.Place) (parent, base string) {
	parent, base = path.Split(sidePlaces[p])
	return path.Clean(parent), base
}

// dropPlace removes a place, or what a program put there or above it.
func (s *Sandbox) dropPlace(ctx context.Context, p runtime.Place) error {
	if p == runtime.Workdir {
		return &runtime.PathError{Path: string(p), Reason: "can't be removed"}
	}
	parent, base := splitPlace(p)
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

// openParent opens the directory that several places share, and makes it where it is
// missing. What a program put in its way goes, if the place is to be fresh.
func (s *Sandbox) openParent(ctx context.Context, parent string, fresh bool) (*directory, error) {
	dir, err := openForced(s.side, parent)
	if err == nil {
		return dir, nil
	}
	var st unix.Stat_t
	statErr := err
	if !errors.Is(err, fs.ErrNotExist) {
		st, statErr = statAt(s.side, parent)
	}
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
	case statErr != nil:
		return nil, statErr
	case kindOf(st) == unix.S_IFDIR:
		return nil, walkError(parent, err)
	case !fresh:
		return nil, &runtime.PathError{Path: parent, Reason: "is not a directory any more"}
	default:
		if err := removeAt(ctx, s.side, parent); err != nil {
			return nil, err
		}
	}
	dir, err = s.mkdir(s.side, parent)
	if errors.Is(err, unix.EEXIST) {
		return openWalk(s.side, parent, true)
	}
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", parent, err)
	}
	return dir, nil
}
