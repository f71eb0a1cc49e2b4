// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// Flags say where the run is.
type Flags struct {
	store stores.Flags
	queue queues.Flags
	json  bool
}

// Register adds the flags that every command has which gives orders.
func (f *Flags) Register(cmd *cobra.Command) {
	f.store.Register(cmd)
	f.queue.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON, an object for each run")
}

// Where is how the help of these commands explains where orders go.
const Where = `The decision is written to the store first. Then the process that works the data
directory carries it out, or the queue of a fleet that --queue names is told. Without
either it is only written, and whoever works on the run obeys it: a fleet within seconds,
tidemill run when it is given the run next. What puts trials into the queue (resume, retry)
needs it: where it can't be told the exit code is 1, and the same command does it later.

RUN may be the group of a matrix; then it is for each of its runs. Giving the same order
again changes nothing and says so. Of several runs those that refuse are told at the end,
and the others are as they were asked to be.
`

// Give gives an order for runs, or each run of a group, and tells what came of it. before
// may complete the order by what is in the store; it may be nil. One that is refused for a
// run is given to the others all the same.
func (f *Flags) Give(cmd *cobra.Command, words []string, o producer.Order, before func(context.Context, bundle.Store, manifest.RunRecord, *producer.Order) error) (err error) {
	ctx := cmd.Context()
	if f.queue.URL != "" {
		if err := f.queue.Check(); err != nil {
			return err // before anything is decided
		}
	}
	store, err := stores.OpenForReports(ctx, f.store.Where())
	if err != nil {
		return err
	}
	defer app.Closing(&err, store.Close)
	recs, err := resolveAll(ctx, store, words)
	if err != nil {
		return err
	}
	o.By = app.Whoami()
	h := &hand{flags: f, store: store}
	defer app.Closing(&err, h.close)
	var refused []error
	var deaf untold
	for _, rec := range recs {
		order := o
		order.Run = rec.RunID
		if before != nil {
			if err := before(ctx, store, rec, &order); err != nil {
				return err
			}
		}
		a, err := h.give(ctx, rec, order)
		if err != nil {
			a, err = deaf.note(err)
		}
		switch {
		case isRefused(err):
			refused = append(refused, Explain(err))
			continue
		case err != nil:
			return errors.Join(err, errors.Join(refused...), deaf.tell(cmd.ErrOrStderr()))
		}
		if err := f.print(cmd.OutOrStdout(), order, a); err != nil {
			return err
		}
		warnOfGraders(cmd.ErrOrStderr(), a)
	}
	return errors.Join(deaf.tell(cmd.ErrOrStderr()), errors.Join(refused...))
}

// isRefused reports whether a run is not one for such an order, which says nothing of others.
func isRefused(err error) bool {
	_, refused := errors.AsType[*producer.RefusedError](err)
	_, nothing := errors.AsType[*producer.NothingSelectedError](err)
	return refused || nothing
}

// resolveAll finds all runs before any is given an order, each once.
func resolveAll(ctx context.Context, store bundle.Store, words []string) (all []manifest.RunRecord, err error) {
	for _, word := range words {
		recs, err := resolve(ctx, store, word)
		if err != nil {
			return nil, err
		}
		for _, rec := range recs {
			if !slices.ContainsFunc(all, func(r manifest.RunRecord) bool { return r.RunID == rec.RunID }) {
				all = append(all, rec)
			}
		}
	}
	return all, nil
}

// Explain makes bad input of what was refused, with what to do instead.
func Explain(err error) error {
	if refused, ok := errors.AsType[*producer.RefusedError](err); ok {
		if refused.Fix != "" {
			return app.Usage(app.Hint(err, "%s", refused.Fix))
		}
		return app.Usage(err)
	}
	if _, ok := errors.AsType[*producer.NothingSelectedError](err); ok {
		return app.Usage(err)
	}
	return err
}

// resolve finds the runs, and the names that somebody may have meant where there is none.
func resolve(ctx context.Context, store bundle.Store, word string) ([]manifest.RunRecord, error) {
	recs, err := trials.Resolve(ctx, store, word)
	if _, unknown := errors.AsType[*dispatch.UnknownRunError](err); !unknown {
		return recs, err
	}
	var names []string
	for id, listErr := range bundle.ListRuns(ctx, store) {
		if listErr != nil {
			return nil, listErr
		}
		names = append(names, id)
	}
	if near := manifest.Nearest(word, names); near != "" {
		return nil, app.Usage(app.Hint(fmt.Errorf("no run %.100q in %s", word, store.URL()), "did you mean %s? tidemill status lists the runs", near))
	}
	return nil, err
}

// hand carries orders to one place.
type hand struct {
	flags *Flags
	store bundle.Store
	p     *producer.Producer
	undo  []func() error
}

func (h *hand) close() error {
	var errs []error
	for _, f := range h.undo {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

func (h *hand) give(ctx context.Context, rec manifest.RunRecord, o producer.Order) (*producer.Answer, error) {
	if dir, ok := stores.Directory(h.flags.store.Where()); ok && h.p == nil {
		a, err := ask(ctx, dir, o)
		if !errors.Is(err, local.ErrNoOwner) {
			return a, err
		}
	}
	p, err := h.producer(ctx)
	if err != nil {
		return nil, err
	}
	return p.Give(ctx, rec, o)
}

// producer is one of our own, where nobody else carries orders out.
func (h *hand) producer(ctx context.Context) (*producer.Producer, error) {
	if h.p != nil {
		return h.p, nil
	}
	identity, err := bundle.ReadIdentity(ctx, h.store)
	if err != nil {
		return nil, err
	}
	p := &producer.Producer{Store: h.store, StoreUUID: identity.StoreUUID, Log: zerolog.Nop(), Version: version.String()}
	if h.flags.queue.URL != "" {
		q := &lateQueue{dial: func(ctx context.Context) (*natsqueue.Queue, error) {
			return h.flags.queue.Dial(ctx, identity.StoreUUID)
		}}
		h.undo = append(h.undo, q.close)
		p.Queue = q
	}
	h.p = p
	return p, nil
}

func (f *Flags) print(w io.Writer, o producer.Order, a *producer.Answer) error {
	if f.json {
		return app.PrintJSON(w, a)
	}
	text := Tell(o, a)
	if next := f.next(o, a); next != "" {
		text += "; " + next
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
