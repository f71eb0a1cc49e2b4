// SPDX-License-Identifier: Apache-2.0

package gccmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/internal/sweep"
	"github.com/tidemill/tidemill/runtime"
)

// ground is what is looked at.
type ground struct {
	sweeper *sweep.Sweeper
	store   string
	// owner has the directory, nil where we have it or there is none.
	owner *local.Owner
	owned bool

	undo []func() error // newest last
}

func (g *ground) onClose(f func() error) { g.undo = append(g.undo, f) }

func (g *ground) close() error {
	var errs []error
	for i := len(g.undo) - 1; i >= 0; i-- {
		errs = append(errs, g.undo[i]())
	}
	return errors.Join(errs...)
}

// open finds out whose things they are, and who works there.
func (o options) open(ctx context.Context) (_ *ground, err error) {
	g := &ground{}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	where := o.store.Where()
	store, err := stores.OpenExisting(ctx, where)
	if err != nil {
		return nil, err
	}
	identity, err := bundle.ReadIdentity(ctx, store)
	if err := errors.Join(err, store.Close()); err != nil {
		return nil, err
	}
	g.store = identity.StoreUUID
	dir, err := o.directory(where)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		if err := g.acquire(dir); err != nil {
			return nil, err
		}
	}
	c := sweep.Config{Store: g.store, MinAge: cmp.Or(o.olderThan, -1), Log: zerolog.Nop()}
	if o.queue.URL != "" { // else nobody is asked
		q, err := o.queue.Dial(ctx, g.store)
		if err != nil {
			return nil, err
		}
		g.onClose(q.Close)
		c.Leases = patient{q, time.Now().Add(settled)}
	}
	rts, err := o.runtimes(g, dir)
	if err != nil {
		return nil, err
	}
	// On a fleet, and without the lock, others may make sandboxes meanwhile.
	shared := o.work != "" || o.queue.URL != "" || !g.owned
	c.Sources = runtimes.Sources(rts, func(kind string) bool { return g.owned && runtimes.Alone(kind, shared) })
	if dir != "" {
		c.Sources = append(c.Sources, g.files(dir, o.unsent)...)
	}
	g.sweeper, err = sweep.New(c)
	return g, err
}

// directory is where a worker works, or "" where there is no such place.
func (o options) directory(where string) (string, error) {
	dir, ok := stores.Directory(where)
	if o.work != "" {
		dir, ok = o.work, true
	}
	if !ok {
		return "", nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(local.HiddenOf(dir)); err != nil || !info.IsDir() {
		if o.work != "" {
			return "", app.Usage(fmt.Errorf("--work-dir %s: no worker has worked there: it has no %s", o.work, filepath.Base(local.HiddenOf(dir))))
		}
		return "", nil
	}
	return dir, nil
}

// acquire becomes the directory's owner, or finds out who is.
func (g *ground) acquire(dir string) error {
	d, err := local.Acquire(dir, "tidemill gc")
	if busy, ok := errors.AsType[*local.BusyError](err); ok {
		g.owner = &busy.Owner
		return nil
	}
	if err != nil {
		return local.Explain(err, "data")
	}
	g.owned = true
	g.onClose(d.Release)
	return nil
}

// runtimes makes those that are looked at. Where nothing was ever made, none of their
// directories is.
func (o options) runtimes(g *ground, dir string) (map[string]runtime.Runtime, error) {
	work := local.WorkOf(dir)
	if _, err := os.Stat(work); dir == "" || err != nil {
		temp, err := os.MkdirTemp("", "tidemill-gc-")
		if err != nil {
			return nil, err
		}
		g.onClose(func() error { return os.RemoveAll(temp) })
		work = filepath.Join(temp, "work")
	}
	rts, err := runtimes.New(runtimes.Config{Dir: work, StoreUUID: g.store}, o.types...)
	if _, ok := errors.AsType[*runtimes.UnknownTypeError](err); ok {
		return nil, app.Usage(fmt.Errorf("--runtime: %w", err))
	}
	if err != nil {
		return nil, err
	}
	g.onClose(func() error { return runtimes.Close(rts) })
	return rts, nil
}

// files are the places of a directory that only its owner uses.
func (g *ground) files(dir string, unsent bool) []sweep.Source {
	theirs := func(string) bool { return !g.owned }
	worker := local.WorkerOf(dir)
	var sources []sweep.Source
	for _, f := range []sweep.Files{
		{Kind: "bundle", Dir: filepath.Join(worker, "spool")},
		{Kind: "pack", Dir: filepath.Join(worker, "packs"), Match: sweep.Unpacking},
		{Kind: "temporary", Dir: local.HiddenOf(dir), Match: local.IsRebuilt},
	} {
		f.Store, f.InUse = g.store, theirs
		sources = append(sources, sweep.Source{Name: f.Kind, Place: f, Alone: true})
	}
	only := sweep.Files{Kind: "unsent", Dir: filepath.Join(worker, "unsent"), Store: g.store, InUse: theirs}
	if unsent {
		return append(sources, sweep.Source{Name: only.Kind, Place: only, Alone: true})
	}
	return append(sources, sweep.Source{Name: only.Kind, Place: precious{only}})
}

// precious are files of which there is no other copy. They are kept, and for ever.
type precious struct{ sweep.Files }

func (p precious) List(ctx context.Context) ([]runtime.Resource, error) {
	list, err := p.Files.List(ctx)
	for i := range list {
		list[i].Kept = true
	}
	return list, err
}
