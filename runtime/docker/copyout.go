// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

// CopyOut streams what path names. Names in the stream are relative to the place; the
// place itself has no entry. The engine leaves sockets out without a word, and sends a
// file whole or not at all, so the rest of a directory behind files that are left out is
// left out too when there would be too much to read past (Config.ReadPast).
func (s *Sandbox) CopyOut(ctx context.Context, p runtime.Place, name string, limits runtime.CopyLimits) (*runtime.Copy, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	ctx, unbind := s.bind(ctx)
	defer unbind()
	c, err := s.copyOut(ctx, p, name, limits)
	if err != nil {
		return nil, fmt.Errorf("copy %q out of %s of sandbox %s: %w", name, p, s.estate.Name, err)
	}
	return c, nil
}

func (s *Sandbox) copyOut(ctx context.Context, p runtime.Place, name string, limits runtime.CopyLimits) (*runtime.Copy, error) {
	if p != runtime.Root && !slices.Contains(runtime.Places, p) {
		return nil, &runtime.PathError{Path: string(p), Reason: "is no place"}
	}
	rel, err := runtime.CleanPath(name)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if p == runtime.Workdir { // an agent that removed it is judged on an empty one
		if err := s.mendWorkdir(ctx); err != nil {
			return nil, err
		}
	}
	s.power.RLock()
	defer s.power.RUnlock()
	place := s.Path(p)
	from := path.Join(place, rel)
	k, size, err := s.source(ctx, place, from)
	if err != nil {
		return nil, s.lostOr(ctx, err)
	}
	out := newOutgoing(s.rt.cfg, limits, rel)
	if k == other && out.over(rel, size) { // its size is known, so it needn't be read past
		return out.done()
	}
	if err := s.fetch(ctx, from, out); err != nil {
		return nil, errors.Join(s.lostOr(ctx, err), out.body.Close())
	}
	// What was put on the way while it was read may have led elsewhere.
	if _, _, err := s.source(ctx, place, from); err != nil && !errors.Is(err, runtime.ErrNotExist) {
		return nil, errors.Join(s.lostOr(ctx, err), out.body.Close())
	}
	return out.done()
}

// source looks at what is to be copied, and at all directories above it.
func (s *Sandbox) source(ctx context.Context, place, from string) (kind, int64, error) {
	e, id := s.rt.engine, s.box.ID
	at, k, err := e.walk(ctx, id, place)
	if err != nil {
		return k, 0, err
	}
	if k == missing {
		return k, 0, fmt.Errorf("%s: %w", at, runtime.ErrNotExist)
	}
	if k != directory {
		return k, 0, inTheWay(at, k)
	}
	if from == place {
		return k, 0, nil
	}
	at, k, err = e.walk(ctx, id, path.Dir(from))
	switch {
	case err != nil:
		return k, 0, err
	case k == missing || k == other:
		return k, 0, fmt.Errorf("%s: %w", at, runtime.ErrNotExist)
	case k == symlink:
		return k, 0, inTheWay(at, k)
	}
	k, size, err := e.kindAt(ctx, id, from)
	if err == nil && k == missing {
		err = fmt.Errorf("%s: %w", from, runtime.ErrNotExist)
	}
	return k, size, err
}

// fetch reads the engine's stream through the limits.
func (s *Sandbox) fetch(ctx context.Context, from string, out *outgoing) error {
	e := s.rt.engine
	// The engine's first answer is due in time; how long the rest takes depends on how
	// much it is, so what is watched there is that it goes on.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := newIdle(e.long, func() { cancel(&stalledError{"copy files out of the container", e.long}) })
	defer idle.stop()
	in, _, err := e.CopyFromContainer(ctx, s.box.ID, from)
	if err == nil {
		defer in.Close()
		err = out.take(idle.reader(in), path.Base(from))
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isGone(err):
		return fmt.Errorf("%s: %w", from, runtime.ErrNotExist)
	}
	return e.explain("copy files out of the container", err)
}

// mendWorkdir makes the workdir anew where the sandbox's own programs removed or replaced
// it: what they do to it is their result, and must not look like a sandbox that was lost.
func (s *Sandbox) mendWorkdir(ctx context.Context) error {
	_, k, err := s.rt.engine.walk(ctx, s.box.ID, s.box.Workdir)
	if err == nil && k == directory {
		return nil
	}
	if err == nil {
		s.power.Lock()
		defer s.power.Unlock()
		in := &incoming{sandbox: s, place: s.box.Workdir, under: s.box.Workdir, owner: s.box.Agent, mend: true, body: &spool{}}
		err = in.put(ctx)
	}
	if err != nil {
		return fmt.Errorf("its workdir can't be made anew: %w", s.lostOr(ctx, err))
	}
	return nil
}

// copyStream is the reading end.
type copyStream struct {
	io.Reader
	spool *spool
}

func (c *copyStream) Close() error { return c.spool.Close() }

// base strips the name that the engine gives to what was asked for.
func base(name, first string) (string, bool) {
	name = path.Clean(strings.TrimLeft(name, "/"))
	if first == "/" {
		return name, true
	}
	if name == first {
		return ".", true
	}
	return strings.CutPrefix(name, first+"/")
}
