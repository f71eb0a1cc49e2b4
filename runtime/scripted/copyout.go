// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/tidemill/tidemill/runtime"
)

// maxSkipped caps the list of what was left out; the total goes on counting.
const maxSkipped = 1000

// CopyOut implements [runtime.Sandbox]. What the stream will hold is settled here;
// programs that write meanwhile don't change it.
func (s *sandbox) CopyOut(ctx context.Context, p runtime.Place, name string, limits runtime.CopyLimits) (*runtime.Copy, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	switch _, ok := places[p]; {
	case p == runtime.Root && !s.rt.props.Images:
		return nil, s.rt.unsupported("place", p)
	case p != runtime.Root && !ok:
		return nil, fmt.Errorf("copy out: there is no place %q", p)
	}
	base := s.box.path(p)
	rel, err := inside(name)
	if err != nil {
		return nil, err
	}
	fs := s.box.fs
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n, err := fs.strict(path.Join(base, rel), false)
	switch {
	case errors.Is(err, errIsLink) || err == nil && rel == "" && n.kind == symlink:
		return nil, &runtime.PathError{Path: path.Join(base, rel), Reason: errIsLink.Error()}
	case err != nil:
		return nil, fmt.Errorf("%s in %s: %w", name, p, runtime.ErrNotExist)
	}
	out := pack{limits: limits}
	if err := out.add(rel, n); err != nil {
		return nil, err
	}
	out.parts = append(out.parts, bytes.NewReader(make([]byte, 1024))) // the end of a tar stream
	stream := io.NopCloser(io.MultiReader(out.parts...))
	return &runtime.Copy{ReadCloser: stream, Skipped: func() ([]runtime.Skipped, int) { return out.skipped, out.total }}, nil
}

// pack is a stream in the making.
type pack struct {
	limits  runtime.CopyLimits
	bytes   int64
	entries int
	parts   []io.Reader
	skipped []runtime.Skipped
	total   int
}

func (k *pack) skip(name string, size int64, reason string) {
	k.total++
	if len(k.skipped) < maxSkipped {
		k.skipped = append(k.skipped, runtime.Skipped{Path: name, Bytes: size, Reason: reason})
	}
}

// add puts a file, or a directory with all that is below it, into the stream. The
// place itself has the empty name and no entry.
func (k *pack) add(name string, n *node) error {
	if name != "" {
		if reason := k.refuses(n); reason != "" {
			k.skip(name, n.size(), reason)
		} else if err := k.entry(name, n); err != nil {
			return err
		}
	}
	for _, child := range n.names() {
		if err := k.add(path.Join(name, child), n.entries[child]); err != nil {
			return err
		}
	}
	return nil
}

func (k *pack) refuses(n *node) string {
	switch l := k.limits; {
	case n.kind == fifo:
		return "fifo"
	case l.Entries > 0 && k.entries >= l.Entries:
		return fmt.Sprintf("beyond the limit of %d entries", l.Entries)
	case l.FileBytes > 0 && n.size() > l.FileBytes:
		return fmt.Sprintf("larger than the limit of %d bytes", l.FileBytes)
	case l.Bytes > 0 && k.bytes+n.size() > l.Bytes:
		return fmt.Sprintf("beyond the limit of %d bytes in all", l.Bytes)
	default:
		return ""
	}
}

func (k *pack) entry(name string, n *node) error {
	k.entries++
	k.bytes += n.size()
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: n.size()}
	switch {
	case n.kind == directory:
		h.Name, h.Typeflag, h.Mode = name+"/", tar.TypeDir, 0o755
	case n.kind == symlink:
		h.Typeflag, h.Mode, h.Linkname = tar.TypeSymlink, 0o777, n.target
	case n.exec:
		h.Mode = 0o755
	}
	// A writer of its own for each header lets the content follow as a reader, without
	// a goroutine and without holding it in memory.
	var head bytes.Buffer
	if err := tar.NewWriter(&head).WriteHeader(h); err != nil {
		return fmt.Errorf("copy out of %s: %w", name, err)
	}
	padding := make([]byte, -n.size()&511)
	k.parts = append(k.parts, &head, n.content(), bytes.NewReader(padding))
	return nil
}
