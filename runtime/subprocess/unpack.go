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
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// unpacker writes the entries of one stream below a directory. That nothing gets out
// of it is [os.Root]'s work; that nothing goes through symlinks, not even such that
// stay inside, is done here.
type unpacker struct {
	root    *os.Root
	limits  runtime.CopyLimits
	links   bool            // symlinks may lead anywhere
	without []string        // entries at the top that are passed over
	made    map[string]bool // directories that are known to be real ones
	modes   []dirMode       // set at the end, so that a read-only directory can be filled
	bytes   int64
	entries int
}

type dirMode struct {
	name string
	mode fs.FileMode
	time time.Time
}

func (u *unpacker) unpack(ctx context.Context, r *tar.Reader) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return u.finish()
		}
		if err != nil {
			return fmt.Errorf("read the tar stream: %w", err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue // metadata; git archive writes one
		}
		if top, _, _ := strings.Cut(path.Clean(h.Name), "/"); slices.Contains(u.without, top) {
			continue
		}
		if err := u.entry(h, r); err != nil {
			return err
		}
	}
}

func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	name, err := runtime.CleanPath(h.Name)
	if err != nil {
		return err
	}
	if err := u.admit(h); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.dir(name, h)
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.file(name, h, r)
	case tar.TypeSymlink:
		return u.symlink(name, h)
	}
	return &runtime.PathError{Path: h.Name, Reason: "is a " + runtime.EntryKind(h.Typeflag) + ": want a file, a directory or a symlink"}
}

// admit counts an entry before anything of it is written.
func (u *unpacker) admit(h *tar.Header) error {
	u.entries++
	u.bytes += h.Size
	l := u.limits
	switch {
	case l.Entries > 0 && u.entries > l.Entries:
		return fmt.Errorf("%w: more than %d entries", runtime.ErrTooLarge, l.Entries)
	case l.FileBytes > 0 && h.Size > l.FileBytes:
		return fmt.Errorf("%w: %q has %d bytes, a file may have %d", runtime.ErrTooLarge, h.Name, h.Size, l.FileBytes)
	case l.Bytes > 0 && u.bytes > l.Bytes:
		return fmt.Errorf("%w: more than %d bytes in all, with %q", runtime.ErrTooLarge, l.Bytes, h.Name)
	}
	return nil
}

// ensure makes a directory and its parents, and refuses what isn't one.
func (u *unpacker) ensure(dir string) error {
	if u.made[dir] {
		return nil
	}
	if err := u.ensure(path.Dir(dir)); err != nil {
		return err
	}
	info, err := u.root.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = u.root.Mkdir(dir, 0o755)
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		err = &runtime.PathError{Path: dir, Reason: "is a symlink, which is not followed"}
	case err == nil && !info.IsDir():
		err = &runtime.PathError{Path: dir, Reason: "is not a directory"}
	}
	if err != nil {
		return err
	}
	u.made[dir] = true
	return nil
}

// replace does what makes an entry, once more after it removed what is in the way.
func (u *unpacker) replace(name string, create func() error) error {
	if name == "." {
		return &runtime.PathError{Path: name, Reason: "is the place itself"}
	}
	if err := u.ensure(path.Dir(name)); err != nil {
		return err
	}
	err := create()
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := u.root.Lstat(name); err == nil && info.IsDir() {
		return &runtime.PathError{Path: name, Reason: "is a directory already"}
	}
	if err := u.root.Remove(name); err != nil {
		return err
	}
	return create()
}

func (u *unpacker) dir(name string, h *tar.Header) error {
	if name == "." {
		return nil // it is there, and its mode is ours
	}
	if info, err := u.root.Lstat(name); err != nil || !info.IsDir() {
		if err := u.replace(name, func() error { return u.root.Mkdir(name, 0o755) }); err != nil {
			return err
		}
	}
	if err := u.ensure(name); err != nil { // its parents too
		return err
	}
	u.modes = append(u.modes, dirMode{name, h.FileInfo().Mode().Perm(), h.ModTime})
	return nil
}

func (u *unpacker) file(name string, h *tar.Header, r io.Reader) error {
	var f *os.File
	err := u.replace(name, func() (err error) {
		f, err = u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Chmod(h.FileInfo().Mode().Perm()) // whatever the umask is
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	if h.ModTime.Unix() != 0 {
		return u.root.Chtimes(name, time.Time{}, h.ModTime)
	}
	return nil
}

func (u *unpacker) symlink(name string, h *tar.Header) error {
	if reason := runtime.LinkProblem(name, h.Linkname); reason != "" && !u.links {
		return &runtime.PathError{Path: name, Reason: reason}
	}
	return u.replace(name, func() error { return u.root.Symlink(h.Linkname, name) })
}

// finish sets the modes and times of directories, the deepest first.
func (u *unpacker) finish() error {
	for i := len(u.modes) - 1; i >= 0; i-- {
		d := u.modes[i]
		if d.time.Unix() != 0 {
			if err := u.root.Chtimes(d.name, time.Time{}, d.time); err != nil {
				return err
			}
		}
		if err := u.root.Chmod(d.name, d.mode); err != nil {
			return err
		}
	}
	return nil
}
