// SPDX-License-Identifier: Apache-2.0

package docker

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

// read checks a stream and writes it to the spool with names from the root.
func (in *incoming) read(ctx context.Context, from io.Reader) error {
	src := ctxReader{ctx, from}
	r, w := tar.NewReader(src), tar.NewWriter(in.body)
	seen := &entries{limits: in.opts.Limits, kinds: map[string]byte{}, dirs: map[string]bool{}}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("read the tar stream: %w", err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue // metadata; git archive writes one
		}
		name, err := seen.admit(h)
		if err != nil {
			return err
		}
		if name == "." {
			continue // it is made anyhow, and its mode is ours
		}
		out := &tar.Header{
			Typeflag: h.Typeflag, Name: strings.TrimPrefix(path.Join(in.under, name), "/"), Linkname: h.Linkname, Size: h.Size,
			Mode: h.Mode & 0o777, ModTime: h.ModTime, Uid: in.owner.UID, Gid: in.owner.GID,
		}
		if h.Typeflag == tar.TypeDir {
			out.Name += "/"
		}
		if h.Typeflag == tar.TypeGNUSparse {
			out.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(out); err != nil {
			return fmt.Errorf("entry %q: %w", h.Name, err)
		}
		if _, err := io.Copy(w, r); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("entry %q: %w", h.Name, err)
		}
	}
	// Whoever wrote the stream may still be at its padding.
	if _, err := io.Copy(io.Discard, src); err != nil {
		return fmt.Errorf("read the stream's end: %w", err)
	}
	for _, dir := range seen.sorted() {
		in.dirs = append(in.dirs, path.Join(in.under, dir))
	}
	return w.Close()
}

// entries are those that a stream has had so far.
type entries struct {
	limits runtime.CopyLimits
	bytes  int64
	count  int
	kinds  map[string]byte // of what isn't a directory
	dirs   map[string]bool // in which something is, or that were listed
}

// sorted lists the directories in which entries are, parents first.
func (e *entries) sorted() []string {
	var list []string
	for d := range e.dirs {
		list = append(list, d)
	}
	slices.Sort(list)
	return list
}

// admit checks an entry and returns its cleaned name.
func (e *entries) admit(h *tar.Header) (string, error) {
	name, err := runtime.CleanPath(h.Name)
	if err != nil {
		return "", err
	}
	if err := e.within(h); err != nil {
		return "", err
	}
	switch h.Typeflag {
	case tar.TypeDir:
	case tar.TypeReg, tar.TypeGNUSparse:
	case tar.TypeSymlink:
		if reason := runtime.LinkProblem(name, h.Linkname); reason != "" {
			return "", &runtime.PathError{Path: name, Reason: reason}
		}
	default:
		return "", &runtime.PathError{Path: h.Name, Reason: "is a " + runtime.EntryKind(h.Typeflag) + ": want a file, a directory or a symlink"}
	}
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return "", &runtime.PathError{Path: h.Name, Reason: "is the place itself"}
		}
		return name, nil
	}
	return name, e.fits(name, h.Typeflag == tar.TypeDir)
}

// fits refuses an entry that goes through another one of the stream that is no directory,
// or takes the place of one that is.
func (e *entries) fits(name string, dir bool) error {
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		if _, taken := e.kinds[d]; taken {
			return &runtime.PathError{Path: name, Reason: d + " is no directory in the same stream"}
		}
		e.dirs[d] = true
	}
	if dir {
		if _, taken := e.kinds[name]; taken {
			return &runtime.PathError{Path: name, Reason: "is no directory in the same stream"}
		}
		e.dirs[name] = true
		return nil
	}
	if e.dirs[name] {
		return &runtime.PathError{Path: name, Reason: "is a directory already"}
	}
	e.kinds[name] = 1
	return nil
}

// within counts an entry before anything of it is written.
func (e *entries) within(h *tar.Header) error {
	e.count++
	e.bytes += h.Size
	l := e.limits
	switch {
	case l.Entries > 0 && e.count > l.Entries:
		return fmt.Errorf("%w: more than %d entries", runtime.ErrTooLarge, l.Entries)
	case l.FileBytes > 0 && h.Size > l.FileBytes:
		return fmt.Errorf("%w: %q has %d bytes, a file may have %d", runtime.ErrTooLarge, h.Name, h.Size, l.FileBytes)
	case l.Bytes > 0 && e.bytes > l.Bytes:
		return fmt.Errorf("%w: more than %d bytes in all, with %q", runtime.ErrTooLarge, l.Bytes, h.Name)
	}
	return nil
}

// ctxReader ends with its context, as far as the reader inside lets it.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r ctxReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
