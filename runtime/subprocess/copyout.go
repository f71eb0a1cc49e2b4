// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"

	"github.com/tidemill/tidemill/runtime"
)

// CopyOut streams what path names. Names in the stream are relative to the place; the
// place itself has no entry. Directories that can't be read are made readable, they
// are our user's; files that can't be read are left out.
func (s *Sandbox) CopyOut(ctx context.Context, p runtime.Place, name string, limits runtime.CopyLimits) (*runtime.Copy, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	c, err := s.copyOut(ctx, p, name, limits)
	if err != nil {
		s.leave()
		return nil, fmt.Errorf("copy %q out of %s of sandbox %s: %w", name, p, s.estate.Name, err)
	}
	return c, nil
}

func (s *Sandbox) copyOut(ctx context.Context, p runtime.Place, name string, limits runtime.CopyLimits) (*runtime.Copy, error) {
	if err := checkPlace(p); err != nil {
		return nil, err
	}
	rel, err := runtime.CleanPath(name)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	dir, err := s.openParentOf(p, rel)
	if err != nil {
		return nil, err
	}

	ctx, unbind := s.bind(ctx)
	r, w := io.Pipe()
	stream := &outCopy{PipeReader: r, done: make(chan struct{})}
	report := &report{limit: s.cfg.SkippedCap}
	// Nobody may be reading when the context ends.
	stop := context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer close(stream.done)
		defer s.leave()
		defer unbind()
		defer stop()
		defer dir.Close()
		w.CloseWithError(pack(ctx, w, dir, rel, limits, report))
	}()
	return &runtime.Copy{ReadCloser: stream, Skipped: report.get}, nil
}

// openParentOf opens the directory in a place that has what is named, or the place itself.
// That the sandbox is there is looked at last: what is missing may be so because it isn't.
func (s *Sandbox) openParentOf(p runtime.Place, rel string) (*directory, error) {
	if p == runtime.Workdir { // which is made anew where it is missing
		if err := s.alive(); err != nil {
			return nil, err
		}
	}
	dir, err := s.openPlace(p)
	if err != nil {
		return nil, s.aliveAnd(err)
	}
	if in := path.Dir(rel); in != "." {
		place := dir
		dir, err = openWalk(place, in, true)
		place.Close()
		if err != nil {
			return nil, s.aliveAnd(err)
		}
	}
	if rel != "." {
		if _, statErr := statAt(dir, path.Base(rel)); statErr != nil {
			err = walkError(rel, statErr)
		}
	}
	if p != runtime.Workdir || err != nil {
		err = s.aliveAnd(err)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// aliveAnd returns an error unless the sandbox isn't alive, which explains it: then nothing
// is said to be missing in it.
func (s *Sandbox) aliveAnd(err error) error {
	lost := s.alive()
	switch {
	case lost == nil:
		return err
	case err == nil:
		return lost
	}
	return fmt.Errorf("%w (%v)", lost, err)
}

// outBuffers are between packers and pipes.
var outBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

func pack(ctx context.Context, w io.Writer, dir *directory, rel string, limits runtime.CopyLimits, rep *report) error {
	buffered := outBuffers.Get().(*bufio.Writer)
	buffered.Reset(w)
	defer func() {
		buffered.Reset(nil)
		outBuffers.Put(buffered)
	}()
	p := &packer{ctx: ctx, tar: tar.NewWriter(buffered), limits: limits, report: rep}
	var err error
	if rel == "." {
		err = p.inside(dir, "", 0)
	} else {
		err = p.entry(dir, path.Base(rel), rel, 0)
	}
	return errors.Join(err, func() error {
		if err != nil {
			return nil // a stream that failed must not look complete
		}
		return errors.Join(p.tar.Close(), buffered.Flush())
	}())
}

// outCopy is the reading end. Closing it ends the writing one and waits for it.
type outCopy struct {
	*io.PipeReader
	done chan struct{}
}

func (c *outCopy) Close() error {
	err := c.PipeReader.Close()
	<-c.done
	return err
}

// report is what a copy left out.
type report struct {
	limit int

	mu    sync.Mutex
	list  []runtime.Skipped
	total int
}

func (r *report) add(name string, bytes int64, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	if len(r.list) < r.limit {
		r.list = append(r.list, runtime.Skipped{Path: name, Bytes: bytes, Reason: reason})
	}
}

func (r *report) get() ([]runtime.Skipped, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list, r.total
}
