// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// outgoing turns the engine's stream into ours: other names, within limits, without what
// is no file.
type outgoing struct {
	limits   runtime.CopyLimits
	cap      int   // of the report
	readPast int64 // how much may still be read and thrown away
	rel      string
	body     *spool
	tar      *tar.Writer
	bytes    int64
	entries  int
	skipped  []runtime.Skipped
	total    int
	at       map[string]part // where files are in the body, by the engine's names, for hard links
}

type part struct{ from, size int64 }

func newOutgoing(cfg Config, limits runtime.CopyLimits, rel string) *outgoing {
	o := &outgoing{
		limits: limits, cap: cfg.SkippedCap, readPast: cfg.ReadPast, rel: rel, body: &spool{dir: cfg.Dir}, at: map[string]part{},
	}
	o.tar = tar.NewWriter(o.body)
	return o
}

// done ends the stream and hands it over.
func (o *outgoing) done() (*runtime.Copy, error) {
	if err := o.tar.Close(); err != nil {
		return nil, errors.Join(err, o.body.Close())
	}
	return &runtime.Copy{
		ReadCloser: &copyStream{o.body.reader(), o.body},
		Skipped:    func() ([]runtime.Skipped, int) { return o.skipped, o.total },
	}, nil
}

func (o *outgoing) skip(name string, bytes int64, reason string) {
	o.total++
	if len(o.skipped) < o.cap {
		o.skipped = append(o.skipped, runtime.Skipped{Path: name, Bytes: bytes, Reason: reason})
	}
}

// over says why a file of a size is left out.
func (o *outgoing) over(name string, size int64) bool {
	l := o.limits
	switch {
	case l.FileBytes > 0 && size > l.FileBytes:
		o.skip(name, size, "larger than the limit of "+byteCount(l.FileBytes)+" for a file")
	case l.Bytes > 0 && size > l.Bytes-o.bytes:
		o.skip(name, size, "beyond the limit of "+byteCount(l.Bytes)+" for all files together")
	default:
		return false
	}
	return true
}

// take reads the engine's stream, in which all names begin with first.
func (o *outgoing) take(from io.Reader, first string) error {
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the engine's stream: %w", err)
		}
		below, ok := base(h.Name, first)
		if !ok {
			return fmt.Errorf("the engine's stream has %q, which is not below %q", h.Name, first)
		}
		name := path.Join(o.rel, below)
		if name == "." {
			continue
		}
		before := o.total
		if err := o.entry(h, r, name); err != nil {
			return err
		}
		if o.total > before && h.Typeflag == tar.TypeReg {
			if o.readPast -= h.Size; o.readPast < 0 {
				o.skip(name, 0, "and everything behind it, which the engine would send only after more than can be read past")
				return nil
			}
		}
	}
}

func (o *outgoing) entry(h *tar.Header, r io.Reader, name string) error {
	if o.limits.Entries > 0 && o.entries >= o.limits.Entries {
		o.skip(name, h.Size, fmt.Sprintf("beyond the limit of %d entries", o.limits.Entries))
		return nil
	}
	out := &tar.Header{Typeflag: h.Typeflag, Name: name, Mode: h.Mode & 0o777, ModTime: h.ModTime.Truncate(time.Second)}
	switch h.Typeflag {
	case tar.TypeDir:
		out.Name += "/"
		return o.header(out)
	case tar.TypeSymlink:
		out.Linkname = h.Linkname
		return o.header(out)
	case tar.TypeReg, tar.TypeGNUSparse:
		return o.file(out, h.Size, r, h.Name)
	case tar.TypeLink:
		first, ok := o.at[h.Linkname]
		if !ok {
			o.skip(name, 0, "another name of a file that was left out")
			return nil
		}
		return o.file(out, first.size, o.body.section(first.from, first.size), "")
	}
	o.skip(name, 0, runtime.EntryKind(h.Typeflag))
	return nil
}

func (o *outgoing) header(h *tar.Header) error {
	o.entries++
	return o.tar.WriteHeader(h)
}

func (o *outgoing) file(h *tar.Header, size int64, r io.Reader, as string) error {
	if o.over(h.Name, size) {
		return nil
	}
	h.Typeflag, h.Size = tar.TypeReg, size
	if err := o.header(h); err != nil {
		return err
	}
	from := o.body.size
	o.bytes += size
	if _, err := io.Copy(o.tar, r); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	if as != "" {
		o.at[as] = part{from, size}
	}
	return nil
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

// idle calls a function when nothing was read for a while.
type idle struct {
	timer *time.Timer
	limit time.Duration
}

func newIdle(limit time.Duration, late func()) *idle {
	return &idle{time.AfterFunc(limit, late), limit}
}

func (i *idle) stop() { i.timer.Stop() }

func (i *idle) reader(r io.Reader) io.Reader { return &idleReader{r, i} }

type idleReader struct {
	r    io.Reader
	idle *idle
}

func (r *idleReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.idle.timer.Reset(r.idle.limit)
	return n, err
}
