// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// unpacker writes the entries of one stream below a directory. Every name is used in a
// directory that was opened, step by step and through no symlink, not even one that stays
// inside, so that nothing gets out.
type unpacker struct {
	top     *directory
	limits  runtime.CopyLimits
	links   bool      // symlinks may lead anywhere
	without []string  // entries at the top that are passed over
	modes   []dirMode // set at the end, so that a read-only directory can be filled
	bytes   int64
	entries int

	ctx context.Context // of unpack, or of ensure where that is all

	// Where the last entry was: the next one is mostly there too.
	at     *directory
	atName string
}

type dirMode struct {
	name string
	mode fs.FileMode
	time time.Time
}

func (u *unpacker) unpack(ctx context.Context, r *tar.Reader) error {
	u.ctx = ctx
	defer u.leave()
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

// in opens a directory, which is made where it is missing, like its parents. The unpacker
// closes it.
func (u *unpacker) in(dir string) (*directory, error) {
	if dir == "." {
		return u.top, nil
	}
	if u.at == nil || u.atName != dir {
		at, err := u.ensure(dir)
		if err != nil {
			return nil, err
		}
		u.leave()
		u.at, u.atName = at, dir
	}
	return u.at, nil
}

func (u *unpacker) leave() {
	if u.at != nil {
		u.at.Close()
		u.at = nil
	}
}

// ensure makes a directory and its parents, refuses what isn't one, and opens it.
func (u *unpacker) ensure(dir string) (*directory, error) {
	if at := openPath(u.top, dir); at != nil {
		return at, nil
	}
	at := u.top
	for end := 0; end < len(dir); {
		step, _, _ := strings.Cut(dir[end:], "/")
		next, err := u.ensureStep(at, step, dir[:end+len(step)])
		if at != u.top {
			at.Close()
		}
		if err != nil {
			return nil, err
		}
		at, end = next, end+len(step)+1
	}
	return at, nil
}

// ensureStep makes a directory first and looks afterwards: a name may have very many steps,
// and to say of each in an error that it is missing would take longer than to make it.
func (u *unpacker) ensureStep(at *directory, step, name string) (*directory, error) {
	if u.ctx.Err() != nil {
		return nil, context.Cause(u.ctx)
	}
	if err := unix.Mkdirat(at.fd, step, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &fs.PathError{Op: "mkdir", Path: at.join(step), Err: err}
	}
	next, err := openDirAt(at, step)
	if err == nil {
		return next, nil
	}
	st, statErr := statAt(at, step)
	switch {
	case statErr == nil && kindOf(st) == unix.S_IFLNK:
		return nil, &runtime.PathError{Path: name, Reason: "is a symlink, which is not followed"}
	case statErr == nil && kindOf(st) != unix.S_IFDIR:
		return nil, &runtime.PathError{Path: name, Reason: "is not a directory"}
	case errors.Is(err, unix.EXDEV):
		return nil, &runtime.PathError{Path: name, Reason: "is on another mount"}
	}
	return nil, err
}

// replace does what makes an entry, once more after it removed what is in the way.
func (u *unpacker) replace(name string, create func(at *directory, base string) error) error {
	if name == "." {
		return &runtime.PathError{Path: name, Reason: "is the place itself"}
	}
	at, err := u.in(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	err = create(at, base)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if st, err := statAt(at, base); err == nil && kindOf(st) == unix.S_IFDIR {
		return &runtime.PathError{Path: name, Reason: "is a directory already"}
	}
	if err := unix.Unlinkat(at.fd, base, 0); err != nil {
		return &fs.PathError{Op: "unlink", Path: at.join(base), Err: err}
	}
	return create(at, base)
}

func (u *unpacker) dir(name string, h *tar.Header) error {
	if name == "." {
		return nil // it is there, and its mode is ours
	}
	err := u.replace(name, func(at *directory, base string) error {
		err := unix.Mkdirat(at.fd, base, 0o755)
		if errors.Is(err, unix.EEXIST) {
			if st, statErr := statAt(at, base); statErr == nil && kindOf(st) == unix.S_IFDIR {
				return nil
			}
		}
		if err != nil {
			return &fs.PathError{Op: "mkdir", Path: at.join(base), Err: err}
		}
		return nil
	})
	if err != nil {
		return err
	}
	u.modes = append(u.modes, dirMode{name, h.FileInfo().Mode().Perm(), h.ModTime})
	return nil
}

func (u *unpacker) file(name string, h *tar.Header, r io.Reader) error {
	fd := -1
	err := u.replace(name, func(at *directory, base string) (err error) {
		fd, err = createAt(at, base)
		return err
	})
	if err != nil {
		return err
	}
	err = fill(fd, r)
	if err == nil {
		err = unix.Fchmod(fd, uint32(h.FileInfo().Mode().Perm())) // whatever the umask is
	}
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	return u.touch(name, h.ModTime)
}

func fill(fd int, r io.Reader) error {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	for {
		n, err := r.Read(*b)
		if n > 0 {
			if _, err := descriptor(fd).Write((*b)[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacker) symlink(name string, h *tar.Header) error {
	if reason := runtime.LinkProblem(name, h.Linkname); reason != "" && !u.links {
		return &runtime.PathError{Path: name, Reason: reason}
	}
	return u.replace(name, func(at *directory, base string) error {
		if err := unix.Symlinkat(h.Linkname, at.fd, base); err != nil {
			return &fs.PathError{Op: "symlink", Path: at.join(base), Err: err}
		}
		return nil
	})
}

// touch sets when an entry was changed, if the stream says so.
func (u *unpacker) touch(name string, changed time.Time) error {
	if changed.Unix() == 0 {
		return nil
	}
	at, err := u.in(path.Dir(name))
	if err != nil {
		return err
	}
	spec, err := unix.TimeToTimespec(changed)
	if err != nil {
		return &fs.PathError{Op: "chtimes", Path: at.join(path.Base(name)), Err: err}
	}
	return touchAt(at, path.Base(name), spec)
}

// finish sets the modes and times of directories, the deepest first.
func (u *unpacker) finish() error {
	for i := len(u.modes) - 1; i >= 0; i-- {
		d := u.modes[i]
		if err := u.touch(d.name, d.time); err != nil {
			return err
		}
		at, err := u.in(path.Dir(d.name))
		if err != nil {
			return err
		}
		if err := chmodAt(at, path.Base(d.name), uint32(d.mode)); err != nil {
			return err
		}
	}
	return nil
}
