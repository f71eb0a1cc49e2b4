// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// draft is an object that is written and on disk, but doesn't have its place yet. It
// has no name where the file system can do without, which saves two changes of a
// directory that all writers share, and leaves nothing behind after a crash.
type draft struct {
	store   *Store
	file    *os.File // nil for one with a name
	path    string   // empty for one without
	version bundle.Version
}

// draft writes what r gives to a new file and brings it to disk. The caller gives it a
// place in dir; discard it in any case.
func (s *Store) draft(ctx context.Context, dir string, r io.Reader, size int64) (*draft, error) {
	f, err := s.newFile(dir)
	if err != nil {
		return nil, err
	}
	d := &draft{store: s}
	if s.unnamed {
		d.file = f
	} else {
		d.path = f.Name()
	}
	if d.version, err = fill(ctx, f, r, size); err == nil && d.file == nil {
		err = f.Close()
	}
	if err != nil {
		_ = f.Close() // a second time, perhaps
		d.discard()
		return nil, err
	}
	return d, nil
}

// newFile makes a file without a name by the directory that it is for, where there is that
// already: writers that meet in one directory wait for each other, and ext4 then looks long
// for a free inode. A file of .tmp can be named anywhere too.
func (s *Store) newFile(dir string) (*os.File, error) {
	// Mode 666 less the umask, as any program would: os.CreateTemp's 600 would stay
	// with the object for ever.
	if s.unnamed {
		f, err := openUnnamed(dir, 0o666)
		if err != nil { // absent, or being removed; what else there is, place finds out
			f, err = openUnnamed(s.temp(), 0o666)
		}
		return f, err
	}
	return os.OpenFile(s.newName(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

func (s *Store) temp() string { return filepath.Join(s.root, tempDir) }

func (s *Store) newName() string {
	return filepath.Join(s.temp(), strconv.Itoa(os.Getpid())+"-"+bundle.NewNonce())
}

// link gives the draft a place where nothing is, or fails with [fs.ErrExist].
func (d *draft) link(to string) error {
	if d.file != nil {
		return linkUnnamed(d.file, to)
	}
	return os.Link(d.path, to)
}

// replace gives the draft a place, whatever is there.
func (d *draft) replace(to string) error {
	if d.path == "" {
		err := d.link(to)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		name := d.store.newName()
		if err := d.link(name); err != nil {
			return err
		}
		d.path = name
	}
	err := rename(d.path, to)
	if err == nil {
		d.path = ""
	}
	return err
}

// discard frees what the draft holds. An object that it became stays.
func (d *draft) discard() {
	if d.file != nil {
		_ = d.file.Close() // it was synced
	}
	if d.path != "" {
		_ = os.Remove(d.path) // it may have been moved
	}
}

// canUnnamed says whether files can be written first and named afterwards here.
func (s *Store) canUnnamed() bool {
	f, err := openUnnamed(s.temp(), 0o666)
	if err != nil {
		return false
	}
	defer f.Close()
	name := s.newName()
	if err := linkUnnamed(f, name); err != nil {
		return false
	}
	return os.Remove(name) == nil
}

func fill(ctx context.Context, f *os.File, r io.Reader, size int64) (bundle.Version, error) {
	n, err := copyTo(ctx, f, r, size)
	if err != nil {
		return "", err
	}
	if size >= 0 && n > size {
		return "", fmt.Errorf("the reader gave more than the %d bytes that were announced", size)
	}
	if size >= 0 && n < size {
		return "", fmt.Errorf("the reader gave %d bytes, want %d", n, size)
	}
	if err := setTimes(f, time.Now()); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	return version(info), nil
}

// copyTo returns how much was copied: where the reader gives more than the size, which may
// be -1, more than that.
func copyTo(ctx context.Context, f *os.File, r io.Reader, size int64) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if b, ok := r.(*bytes.Reader); ok && b.Len() <= bufferSize {
		return b.WriteTo(f) // records, which need no buffer
	}
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	if size >= 0 {
		// One more would show that there is more.
		r = io.LimitReader(r, size+1)
	}
	// Only Read and Write are offered, so that the buffer is used and the context
	// looked at.
	return io.CopyBuffer(struct{ io.Writer }{f}, ctxReader{ctx, r}, buf[:])
}

// rename is os.Rename without its look at the target, which is ours to judge.
func rename(from, to string) error {
	if err := syscall.Rename(from, to); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
