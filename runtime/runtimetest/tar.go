// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

// entry is one entry of a tar stream.
type entry struct {
	Name string
	Type byte // tar.TypeReg, …
	Mode int64
	Link string
	Data string
}

func file(name, data string, mode int64) entry {
	return entry{Name: name, Type: tar.TypeReg, Mode: mode, Data: data}
}
func dir(name string) entry          { return entry{Name: name, Type: tar.TypeDir, Mode: 0o755} }
func link(name, target string) entry { return entry{Name: name, Type: tar.TypeSymlink, Link: target} }

// tarOf makes a stream.
func tarOf(entries ...entry) io.Reader {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		h := &tar.Header{Name: e.Name, Typeflag: e.Type, Mode: e.Mode, Linkname: e.Link, Size: int64(len(e.Data))}
		if err := w.WriteHeader(h); err != nil {
			panic(fmt.Sprintf("tar header of %q: %v", e.Name, err))
		}
		if _, err := io.WriteString(w, e.Data); err != nil {
			panic(fmt.Sprintf("tar body of %q: %v", e.Name, err))
		}
	}
	if err := w.Close(); err != nil {
		panic(fmt.Sprintf("tar: %v", err))
	}
	return &buf
}

func (f *fixture) tryCopyIn(sb runtime.Sandbox, p runtime.Place, opts runtime.CopyOptions, entries ...entry) error {
	ctx, cancel := f.patience()
	defer cancel()
	return sb.CopyIn(ctx, p, tarOf(entries...), opts)
}

func (f *fixture) copyIn(sb runtime.Sandbox, p runtime.Place, opts runtime.CopyOptions, entries ...entry) {
	f.Helper()
	if err := f.tryCopyIn(sb, p, opts, entries...); err != nil {
		f.Fatalf("CopyIn to %s: %v", p, err)
	}
}

// fresh makes an empty place.
func (f *fixture) fresh(sb runtime.Sandbox, p runtime.Place) {
	f.Helper()
	ctx, cancel := f.patience()
	defer cancel()
	if err := sb.CopyIn(ctx, p, nil, runtime.CopyOptions{Fresh: true}); err != nil {
		f.Fatalf("CopyIn to %s, fresh, without a stream: %v", p, err)
	}
}

// copied is what a CopyOut gave, by cleaned name and without the place itself.
type copied struct {
	entries map[string]entry
	skipped map[string]runtime.Skipped
	total   int
}

func (f *fixture) tryCopyOut(sb runtime.Sandbox, p runtime.Place, name string, limits runtime.CopyLimits) (got copied, err error) {
	f.Helper()
	ctx, cancel := f.patience()
	defer cancel()
	c, err := sb.CopyOut(ctx, p, name, limits)
	if err != nil {
		return copied{}, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	got = copied{entries: map[string]entry{}, skipped: map[string]runtime.Skipped{}}
	r := tar.NewReader(c)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return got, fmt.Errorf("tar stream of %s: %w", name, err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return got, fmt.Errorf("tar entry %s: %w", h.Name, err)
		}
		if strings.HasPrefix(h.Name, "/") || strings.HasPrefix(path.Clean(h.Name), "..") {
			f.Errorf("CopyOut gave the entry %q, want names relative to the place", h.Name)
		}
		if path.Clean(h.Name) == "." {
			continue
		}
		e := entry{Name: path.Clean(h.Name), Type: h.Typeflag, Mode: h.Mode & 0o111, Link: h.Linkname, Data: string(data)}
		if e.Type != tar.TypeReg {
			e.Mode = 0 // only the x bits of files are promised
		}
		got.entries[e.Name] = e
	}
	if _, err := io.Copy(io.Discard, c); err != nil { // what follows the tar's end
		return got, fmt.Errorf("end of the stream of %s: %w", name, err)
	}
	list, total := c.Skipped()
	got.total = total
	for _, s := range list {
		got.skipped[s.Path] = s
	}
	return got, nil
}

func (f *fixture) copyOut(sb runtime.Sandbox, p runtime.Place, name string, limits runtime.CopyLimits) copied {
	f.Helper()
	got, err := f.tryCopyOut(sb, p, name, limits)
	if err != nil {
		f.Fatalf("CopyOut of %s from %s: %v", name, p, err)
	}
	return got
}

// notFollowed checks a CopyOut that could only succeed by following a symlink.
func (f *fixture) notFollowed(what string, got copied, err error) {
	f.Helper()
	for name, e := range got.entries {
		if e.Type != tar.TypeSymlink {
			f.Errorf("%s gave %s %q through a symlink", what, name, e.Data)
		}
	}
	var pathErr *runtime.PathError
	if err != nil && !errors.Is(err, runtime.ErrNotExist) && !errors.As(err, &pathErr) {
		f.Errorf("%s: error %v, want ErrNotExist or a PathError", what, err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		f.Errorf("%s hangs", what)
	}
}
