// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// kind is what is at a path.
type kind int

const (
	missing kind = iota
	directory
	symlink
	other
)

// kindAt looks at the last part of a path; the parts before it are known to be
// directories.
func (e *engine) kindAt(ctx context.Context, id, p string) (kind, int64, error) {
	st, err := e.lstat(ctx, id, p)
	switch {
	case isGone(err):
		return missing, 0, nil
	case err != nil:
		return missing, 0, err
	case st.Mode.IsDir():
		return directory, 0, nil
	case st.Mode&fs.ModeSymlink != 0:
		return symlink, 0, nil
	}
	return other, st.Size, nil
}

// ancestors lists the directories from the first below the root to p itself.
func ancestors(p string) []string {
	var list []string
	for p = path.Clean(p); p != "/" && p != "."; p = path.Dir(p) {
		list = append(list, p)
	}
	slices.Reverse(list)
	return list
}

// walk goes down a path part by part, so that nobody is led elsewhere by a symlink. It
// returns the first part that is no directory and what it is, or the whole path and
// directory.
func (e *engine) walk(ctx context.Context, id, p string) (at string, k kind, err error) {
	for _, at = range ancestors(p) {
		if k, _, err = e.kindAt(ctx, id, at); err != nil || k != directory {
			return at, k, err
		}
	}
	return p, directory, nil
}

// inTheWay is the error for a part of a path that is no directory.
func inTheWay(at string, k kind) error {
	if k == symlink {
		return &runtime.PathError{Path: at, Reason: "is a symlink, which is not followed"}
	}
	return &runtime.PathError{Path: at, Reason: "is not a directory"}
}

// dirEntry is a directory to make.
type dirEntry struct {
	path  string // absolute
	owner account
	mode  int64
}

// header makes the entry of a stream that is unpacked at the root.
func (d dirEntry) header() *tar.Header {
	return &tar.Header{
		Name: strings.TrimPrefix(d.path, "/") + "/", Typeflag: tar.TypeDir, Mode: d.mode, Uid: d.owner.UID, Gid: d.owner.GID,
		ModTime: time.Now().Truncate(time.Second),
	}
}

// putDirs makes directories, or sets owner and mode of those that are there.
func (e *engine) putDirs(ctx context.Context, id string, dirs ...dirEntry) error {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	var errs []error
	for _, d := range dirs {
		errs = append(errs, w.WriteHeader(d.header()))
	}
	if err := errors.Join(append(errs, w.Close())...); err != nil {
		return err
	}
	return e.putArchive(ctx, id, &buf)
}

// furnish prepares a container in which nothing but our PID 1 has run yet: it resolves users, and the
// symlinks that the image itself has on the way to the workdir, and makes that where it
// is missing.
func (o *opening) furnish(ctx context.Context) error {
	if err := o.accounts(ctx); err != nil {
		return err
	}
	e, id := o.rt.engine, o.box.ID
	const most = 20 // as many symlinks as there could be on a sane way
	for range most {
		at, k, err := e.walk(ctx, id, o.box.Workdir)
		if err != nil {
			return err
		}
		switch k {
		case directory:
			return nil
		case missing:
			return e.putDirs(ctx, id, o.missingDirs(at)...)
		case other:
			return &refusedError{&runtime.PathError{Path: at, Reason: "is in the image and no directory, so it can't be the workdir"}}
		case symlink:
			st, err := e.lstat(ctx, id, at)
			if err != nil {
				return err
			}
			target := st.LinkTarget // resolved by the engine, all the way
			if !path.IsAbs(target) || o.box.Volume != "" {
				return &refusedError{&runtime.PathError{Path: at, Reason: "is a symlink in the image, so it can't be the workdir: name the directory itself"}}
			}
			o.box.Workdir = path.Join(target, strings.TrimPrefix(o.box.Workdir, at))
		}
	}
	return &refusedError{&runtime.PathError{Path: o.box.Workdir, Reason: "has too many symlinks on its way"}}
}

// missingDirs are the directories from at down to the workdir, which is the agent's.
func (o *opening) missingDirs(at string) []dirEntry {
	var dirs []dirEntry
	for _, d := range ancestors(o.box.Workdir) {
		if len(d) < len(at) {
			continue
		}
		entry := dirEntry{path: d, mode: 0o755}
		if d == o.box.Workdir {
			entry.owner = o.box.Agent
		}
		dirs = append(dirs, entry)
	}
	return dirs
}
