// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

const (
	// packSorted is how many names of one directory are read at once, or some more. A
	// directory with fewer comes in order of names; a larger one costs no more memory.
	packSorted = 4096
	// packDepth bounds the descriptors that a copy has open.
	packDepth = 128
)

// packer writes a tree as a tar stream.
type packer struct {
	ctx     context.Context
	tar     *tar.Writer
	limits  runtime.CopyLimits
	report  *report
	bytes   int64
	entries int
}

// inside packs what is in a directory; prefix is its name with a slash.
func (p *packer) inside(dir *directory, prefix string, depth int) error {
	for more := true; more; {
		names, further, err := dir.names(packSorted)
		slices.Sort(names)
		for _, name := range names {
			if err := p.entry(dir, name, prefix+name, depth); err != nil {
				return err
			}
		}
		if err != nil {
			p.report.add(prefix, 0, "can't be read on: "+reasonOf(err))
		}
		more = further
	}
	return nil
}

// entry packs one entry with all that is below it, or says why not. It returns an
// error only when the stream can't go on.
func (p *packer) entry(dir *directory, base, name string, depth int) error {
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	if p.limits.Entries > 0 && p.entries >= p.limits.Entries {
		p.report.add(name, 0, fmt.Sprintf("beyond the limit of %d entries, with all that is below it", p.limits.Entries))
		return nil
	}
	st, err := statAt(dir, base)
	if err != nil {
		p.report.add(name, 0, reasonOf(err)) // it was removed, or the directory can't be searched
		return nil
	}
	h := &tar.Header{
		Name: name, Mode: int64(uint32(st.Mode) & 0o777), ModTime: time.Unix(int64(st.Mtim.Sec), 0),
	}
	switch kindOf(st) {
	case unix.S_IFDIR:
		return p.dir(dir, base, h, depth)
	case unix.S_IFREG:
		return p.file(dir, base, h, int64(st.Size))
	case unix.S_IFLNK:
		target, err := readlinkAt(dir, base)
		if err != nil {
			p.report.add(name, 0, reasonOf(err))
			return nil
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
		return p.header(h)
	}
	p.report.add(name, 0, specialName(kindOf(st)))
	return nil
}

func specialName(kind uint32) string {
	switch kind {
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		return "device"
	}
	return "neither a file nor a directory"
}

func (p *packer) header(h *tar.Header) error {
	p.entries++
	return p.tar.WriteHeader(h)
}

func (p *packer) dir(dir *directory, base string, h *tar.Header, depth int) error {
	if depth == packDepth {
		p.report.add(h.Name, 0, fmt.Sprintf("deeper than %d directories", packDepth))
		return nil
	}
	sub, err := openForced(dir, base)
	if err != nil {
		reason := reasonOf(err)
		if errors.Is(err, unix.EXDEV) {
			reason = "on another mount"
		}
		p.report.add(h.Name, 0, reason)
		return nil
	}
	defer sub.Close()
	name := h.Name
	h.Typeflag, h.Name = tar.TypeDir, name+"/"
	if err := p.header(h); err != nil {
		return err
	}
	return p.inside(sub, name+"/", depth+1)
}

func (p *packer) file(dir *directory, base string, h *tar.Header, size int64) error {
	if p.over(h.Name, size) {
		return nil
	}
	fd, st, err := openFileAt(dir, base)
	if err != nil {
		p.report.add(h.Name, size, reasonOf(err))
		return nil
	}
	defer unix.Close(fd)
	// Another file may be there by now.
	if size = st.Size; p.over(h.Name, size) {
		return nil
	}
	h.Typeflag, h.Size = tar.TypeReg, size
	if err := p.header(h); err != nil {
		return err
	}
	p.bytes += size
	return p.content(fd, h.Name, size)
}

// over keeps a file that is too large from being opened.
func (p *packer) over(name string, size int64) bool {
	l := p.limits
	switch {
	case l.FileBytes > 0 && size > l.FileBytes:
		p.report.add(name, size, "larger than the limit of "+byteCount(l.FileBytes)+" for a file")
	case l.Bytes > 0 && size > l.Bytes-p.bytes:
		p.report.add(name, size, "beyond the limit of "+byteCount(l.Bytes)+" for all files together")
	default:
		return false
	}
	return true
}

// content writes exactly size bytes, as the header promised, whatever happens to the
// file meanwhile.
func (p *packer) content(fd int, name string, size int64) error {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	for left := size; left > 0; {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		n, err := descriptor(fd).Read((*b)[:min(left, int64(len(*b)))])
		if _, err := p.tar.Write((*b)[:n]); err != nil {
			return err
		}
		left -= int64(n)
		if err != nil && left > 0 {
			reason := "shrank while it was read: zeros took the place of what was missing"
			if !errors.Is(err, io.EOF) {
				reason = "can't be read on, zeros took the place of what was missing: " + reasonOf(err)
			}
			p.report.add(name, left, reason)
			return p.zeros(left, *b)
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil && st.Size > size {
		p.report.add(name, st.Size-size, "grew while it was read: what was added is missing")
	}
	return nil
}

func (p *packer) zeros(n int64, b []byte) error {
	clear(b)
	for n > 0 {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		m, err := p.tar.Write(b[:min(n, int64(len(b)))])
		if err != nil {
			return err
		}
		n -= int64(m)
	}
	return nil
}

// reasonOf leaves the path out, which is said beside it.
func reasonOf(err error) string {
	if named := (*fs.PathError)(nil); errors.As(err, &named) {
		return named.Err.Error()
	}
	return err.Error()
}

func byteCount(n int64) string {
	for _, unit := range []string{"bytes", "KiB", "MiB"} {
		if n < 1024 || n%1024 != 0 {
			return fmt.Sprintf("%d %s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%d GiB", n)
}
