// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemill/tidemill/runtime"
)

// CopyIn unpacks a tar stream into a place. An entry replaces a file or a symlink of
// its name, and goes through no symlink. Modes are kept without setuid, setgid and
// sticky bits, times as they are. Private changes nothing: there are no users.
func (s *Sandbox) CopyIn(ctx context.Context, p runtime.Place, r io.Reader, opts runtime.CopyOptions) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	ctx, unbind := s.bind(ctx)
	defer unbind()
	if err := s.copyIn(ctx, p, r, opts); err != nil {
		return fmt.Errorf("copy into %s of sandbox %s: %w", p, s.estate.Name, err)
	}
	return nil
}

func (s *Sandbox) copyIn(ctx context.Context, p runtime.Place, r io.Reader, opts runtime.CopyOptions) error {
	if err := cmpErr(checkPlace(p), checkUser(opts.User)); err != nil {
		return err
	}
	under, err := runtime.CleanPath(opts.Under)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.alive(); err != nil {
		return err
	}
	if opts.Gone {
		if r != nil {
			return fmt.Errorf("%s is to be gone, and something is to be copied into it", p)
		}
		return s.lostOr(s.dropPlace(ctx, p))
	}
	place, err := s.makePlace(ctx, p, opts.Fresh)
	if err != nil {
		return s.lostOr(err)
	}
	defer place.Close()
	u := &unpacker{ctx: ctx, top: place, limits: opts.Limits}
	if under != "." {
		sub, err := u.ensure(under)
		if err != nil {
			return err
		}
		defer sub.Close()
		u = &unpacker{top: sub, limits: opts.Limits}
	}
	if r == nil {
		return nil
	}
	in := ctxReader{ctx, r}
	if err := u.unpack(ctx, tar.NewReader(in)); err != nil {
		return s.lostOr(err)
	}
	// Whoever wrote the stream may still be at its padding.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("read the stream's end: %w", err)
	}
	return nil
}

// lostOr says that the sandbox is lost where that explains an error.
func (s *Sandbox) lostOr(err error) error {
	if lost := s.alive(); errors.Is(lost, runtime.ErrLost) {
		return errors.Join(lost, err)
	}
	return err
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
