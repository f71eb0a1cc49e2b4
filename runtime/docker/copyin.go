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

	cerrdefs "github.com/containerd/errdefs"

	"github.com/tidemill/tidemill/runtime"
)

// CopyIn unpacks a tar stream into a place. The whole stream is read and checked before
// anything of it is written, so a stream that is refused leaves no trace, but that a place
// that was to be Fresh is empty. An entry replaces a file or a symlink of its name; a
// directory in the stead of a file, or the other way round, is a [runtime.PathError].
// Modes are kept without setuid, setgid and sticky bits, times as they are.
//
// The engine follows symlinks inside the container. So every directory on the way is
// looked at first, and while something may be running in the container it is frozen from
// that look to the end of the copy.
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
	if !slices.Contains(runtime.Places, p) {
		return &runtime.PathError{Path: string(p), Reason: "is no place to copy into"}
	}
	if p == runtime.Workdir && (opts.Fresh || opts.Gone) {
		return &runtime.PathError{Path: string(p), Reason: "can't be removed or made fresh"}
	}
	if opts.Gone && r != nil {
		return fmt.Errorf("%s is to be gone, and something is to be copied into it", p)
	}
	under, err := runtime.CleanPath(opts.Under)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	in := &incoming{sandbox: s, place: s.Path(p), opts: opts, mend: p == runtime.Workdir}
	in.under = path.Join(in.place, under)
	if in.owner, err = s.owner(ctx, opts.User); err != nil {
		return s.lostOr(ctx, err)
	}
	in.body = &spool{dir: s.rt.cfg.Dir}
	defer in.body.Close()
	if r != nil {
		if err := in.read(ctx, r); err != nil {
			return err
		}
	}
	s.power.Lock()
	defer s.power.Unlock()
	return s.lostOr(ctx, in.put(ctx))
}

// owner is whose the files are.
func (s *Sandbox) owner(ctx context.Context, user string) (account, error) {
	if user == "" {
		return s.box.Agent, nil
	}
	return s.rt.engine.account(ctx, s.box.ID, user)
}

// incoming is one CopyIn.
type incoming struct {
	sandbox *Sandbox
	opts    runtime.CopyOptions
	mend    bool   // what is in the place's stead is replaced by an empty directory
	place   string // absolute
	under   string // likewise; where names in the stream begin
	owner   account
	body    *spool   // the stream, with names from the root
	dirs    []string // that have to be directories, absolute, parents first
}

// tries is how often a place is emptied that somebody inside fills again.
const tries = 5

// put makes the place what it should be and unpacks the stream.
func (in *incoming) put(ctx context.Context) error {
	s := in.sandbox
	remove := ""
	if in.opts.Fresh || in.opts.Gone {
		remove = in.place
	}
	for range tries {
		if remove != "" {
			// A parent that is no directory is found below.
			if err := s.remove(ctx, remove); err != nil {
				return err
			}
		}
		again, err := in.attempt(ctx)
		if err != nil || again == "" {
			return err
		}
		remove = again
	}
	return &runtime.PathError{Path: in.place, Reason: "is put there again by something inside, as often as it is removed"}
}

// attempt does it if everything on the way is as it should be, or returns what has to be
// removed first.
func (in *incoming) attempt(ctx context.Context) (again string, err error) {
	s, e, id := in.sandbox, in.sandbox.rt.engine, in.sandbox.box.ID
	thaw, err := s.freeze(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, thaw()) }()

	at, k, err := e.walk(ctx, id, in.place)
	if err != nil {
		return "", err
	}
	fresh := in.opts.Fresh || in.opts.Gone
	switch {
	case k == missing:
	case k == directory && fresh:
		return in.place, nil // it was removed, and is there again
	case k == directory:
	case fresh || in.mend:
		return at, nil
	default:
		return "", inTheWay(at, k)
	}
	if in.opts.Gone {
		return "", nil
	}
	dirs, err := in.missing(ctx, at, k == missing)
	if err != nil {
		return "", err
	}
	return "", in.unpack(ctx, dirs)
}

// missing returns entries for the directories that have to be made, and refuses what
// is in the stead of one.
func (in *incoming) missing(ctx context.Context, at string, gone bool) ([]dirEntry, error) {
	e, id := in.sandbox.rt.engine, in.sandbox.box.ID
	var made []dirEntry
	absent := map[string]bool{}
	need := append(ancestors(in.under), in.dirs...)
	for _, dir := range need {
		inside := dir == in.place || strings.HasPrefix(dir, in.place+"/")
		isMissing := absent[path.Dir(dir)]
		switch {
		case isMissing || gone && dir == at:
			isMissing = true
		case !inside: // walked already
		default:
			k, _, err := e.kindAt(ctx, id, dir)
			if err != nil {
				return nil, err
			}
			if k != missing && k != directory {
				return nil, inTheWay(dir, k)
			}
			isMissing = k == missing
		}
		if absent[dir] {
			continue
		}
		entry := dirEntry{path: dir, mode: 0o755}
		if inside {
			entry.owner = in.owner
		}
		private := dir == in.place && in.opts.Private
		if private {
			entry.mode = 0o700
		}
		if isMissing || private {
			made = append(made, entry)
		}
		absent[dir] = isMissing
	}
	return made, nil
}

// unpack sends the directories and then the stream, as one.
func (in *incoming) unpack(ctx context.Context, dirs []dirEntry) error {
	head := &spool{dir: in.sandbox.rt.cfg.Dir}
	defer head.Close()
	w := tar.NewWriter(head)
	for _, d := range dirs {
		if err := w.WriteHeader(d.header()); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if in.body.size == 0 {
		if len(dirs) == 0 {
			return nil
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	err := in.sandbox.rt.engine.putArchive(ctx, in.sandbox.box.ID, io.MultiReader(head.reader(), in.body.reader()))
	if err != nil && (cerrdefs.IsInvalidArgument(err) || strings.Contains(err.Error(), "cannot overwrite")) {
		return &runtime.PathError{Path: in.under, Reason: err.Error()}
	}
	return err
}
