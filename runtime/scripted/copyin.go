// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

// CopyIn implements [runtime.Sandbox].
func (s *sandbox) CopyIn(ctx context.Context, p runtime.Place, r io.Reader, opts runtime.CopyOptions) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if _, ok := places[p]; !ok { // Root is none either
		return fmt.Errorf("copy in: there is no place %q", p)
	}
	base := s.box.path(p)
	switch {
	case (opts.Fresh || opts.Gone) && p == runtime.Workdir:
		return errors.New("copy in: the workdir can't be made fresh or be removed")
	case opts.Gone && r != nil:
		return fmt.Errorf("copy in: %s is to be gone, and something is to be copied into it", p)
	case opts.Gone:
		return s.box.fs.drop(base)
	}
	under, err := inside(opts.Under)
	if err != nil {
		return err
	}
	fs := s.box.fs
	if err := fs.prepare(base, opts); err != nil {
		return err
	}
	if r == nil {
		return nil
	}
	in := unpack{fs: fs, base: path.Join(base, under), depth: strings.Count(under, "/"), left: opts.Limits, limits: opts.Limits}
	if under != "" {
		in.depth++
	}
	if err := in.mkdir(""); err != nil {
		return &runtime.PathError{Path: opts.Under, Reason: err.Error()}
	}
	t := tar.NewReader(r)
	for {
		if err := s.usable(ctx); err != nil {
			return err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("copy in to %s: %w", p, err)
		}
		if err := in.entry(h, t); err != nil {
			return err
		}
	}
	// What sends the stream may pad its end, and would wait for a reader.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("copy in to %s: %w", p, err)
	}
	return nil
}

// inside cleans a path that has to stay in its place.
func inside(name string) (string, error) {
	switch {
	case strings.HasPrefix(name, "/"):
		return "", &runtime.PathError{Path: name, Reason: "is absolute, want a path inside the place"}
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", &runtime.PathError{Path: name, Reason: "has .. in it, want a path inside the place"}
	}
	if name = path.Clean(name); name == "." {
		return "", nil
	}
	return name, nil
}

// drop removes a place. It follows no link: what a program put in its way goes, and not
// what that points at.
func (f *memfs) drop(base string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.root
	parts := strings.Split(strings.Trim(base, "/"), "/")
	for i, name := range parts {
		next := n.entries[name]
		if i == len(parts)-1 || next != nil && next.kind != directory {
			delete(n.entries, name)
			return nil
		}
		if next == nil {
			return nil
		}
		n = next
	}
	return nil
}

// prepare makes the place. A fresh one replaces whatever a program put there, or
// above it.
func (f *memfs) prepare(base string, opts runtime.CopyOptions) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.root
	parts := strings.Split(strings.Trim(base, "/"), "/")
	for i, name := range parts {
		next := n.entries[name]
		last := i == len(parts)-1
		if next == nil || opts.Fresh && (last || next.kind != directory) {
			next = newDir()
			n.entries[name] = next
		}
		if next.kind != directory {
			return &runtime.PathError{Path: base, Reason: "is no directory any more, a program replaced it"}
		}
		if last && opts.Private {
			next.only = opts.User
		}
		n = next
	}
	return nil
}

// unpack is a CopyIn under way.
type unpack struct {
	fs           *memfs
	base         string
	depth        int // of base below its place: links may go up that far
	limits, left runtime.CopyLimits
	entries      int
}

func (u *unpack) mkdir(name string) error {
	u.fs.mu.Lock()
	defer u.fs.mu.Unlock()
	n, err := u.fs.strict(path.Join(u.base, name), true)
	switch {
	case err != nil:
		return err
	case n.kind == symlink:
		return errIsLink
	case n.kind != directory:
		return errNotDir
	}
	return nil
}

func (u *unpack) entry(h *tar.Header, content io.Reader) error {
	name, err := inside(h.Name)
	if err != nil {
		return err
	}
	if u.entries++; u.limits.Entries > 0 && u.entries > u.limits.Entries {
		return fmt.Errorf("copy in: more than %d entries: %w", u.limits.Entries, runtime.ErrTooLarge)
	}
	refuse := func(reason string) error { return &runtime.PathError{Path: h.Name, Reason: reason} }
	n := &node{exec: h.FileInfo().Mode()&0o111 != 0}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.mkdir(name); err != nil {
			return refuse(err.Error())
		}
		return nil
	case tar.TypeSymlink:
		if !u.stays(name, h.Linkname) {
			return refuse("is a symlink to " + h.Linkname + ", out of its place")
		}
		n.kind, n.target = symlink, h.Linkname
	case tar.TypeReg:
		if err := u.room(h); err != nil {
			return err
		}
		if n.data, err = io.ReadAll(content); err != nil {
			return fmt.Errorf("copy in of %s: %w", h.Name, err)
		}
	default:
		return refuse("is neither a file nor a directory nor a symlink")
	}
	if name == "" {
		return refuse("names the place itself")
	}
	if err := u.mkdir(path.Dir(name)); err != nil {
		return refuse(err.Error())
	}
	return u.place(name, n)
}

// place puts a file or link where it belongs, in the stead of a planted link.
func (u *unpack) place(name string, n *node) error {
	u.fs.mu.Lock()
	defer u.fs.mu.Unlock()
	dir, err := u.fs.strict(path.Join(u.base, path.Dir(name)), false)
	if err != nil {
		return &runtime.PathError{Path: name, Reason: err.Error()}
	}
	if now := dir.entries[path.Base(name)]; now != nil && now.kind == directory {
		return &runtime.PathError{Path: name, Reason: errIsDir.Error()}
	}
	if err := u.fs.put(dir, path.Base(name), n); err != nil {
		return fmt.Errorf("copy in of %s: %w", name, err)
	}
	return nil
}

// room checks the limits before a file's bytes are read.
func (u *unpack) room(h *tar.Header) error {
	if u.limits.FileBytes > 0 && h.Size > u.limits.FileBytes {
		return fmt.Errorf("copy in of %s: %d bytes of at most %d: %w", h.Name, h.Size, u.limits.FileBytes, runtime.ErrTooLarge)
	}
	if u.limits.Bytes > 0 {
		if u.left.Bytes -= h.Size; u.left.Bytes < 0 {
			return fmt.Errorf("copy in: more than %d bytes at %s: %w", u.limits.Bytes, h.Name, runtime.ErrTooLarge)
		}
	}
	return nil
}

// stays tells whether a symlink's target can't leave the place.
func (u *unpack) stays(name, target string) bool {
	if strings.HasPrefix(target, "/") {
		return false
	}
	depth := u.depth + strings.Count(name, "/")
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return false
			}
		default:
			depth++
		}
	}
	return true
}
