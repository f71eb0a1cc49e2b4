// SPDX-License-Identifier: Apache-2.0

// Package gccmd is tidemill gc: what there is of sandboxes and of what goes with them, why
// it is there, and the removal of what nobody needs.
package gccmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/scripted"
)

type options struct {
	store        stores.Flags
	work         string
	queue        queues.Flags
	types        []string
	olderThan    time.Duration
	imageBudget  string
	budget       int64 // of images, as [runtime.PruneOptions] has it
	unsent       bool
	dryRun, json bool
}

// Command returns the gc command.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove what crashes left",
		Long: `Gc lists what there is of a store's sandboxes, by kind, with trial, run, age, and why it
stays or goes; and removes what goes. Workers do the same by themselves, at their start and
every few minutes: gc is for when none runs, and to see.

What lives stays, and so do what is kept, what is young, and what belongs to another store.
With the data directory's lock, what has no living maker goes. While another process has
it, or with --work-dir on a fleet, a leftover goes when it has expired, or if --queue says
that its maker doesn't hold its trial's lease any more.

Bundles that no store took are the only copies: they are listed, and removed with --unsent.
Images are removed with --image-budget.
` + app.ExitHelp("listed, and nothing that should go is left", "", ""),
		Example: `  tidemill gc --dry-run
  tidemill gc --data /var/lib/evals --older-than 1h
  tidemill gc --store /mnt/evals --work-dir tidemill-work --queue nats://127.0.0.1:4222
  tidemill gc --runtime docker --image-budget 20GiB
  tidemill gc --dry-run --json | jq -r '.items[] | select(.fate == "would go") | .id'`,
		Args: app.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.execute(cmd) },
	}
	o.store.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&o.work, "work-dir", "", "`directory` of tidemill worker to look at, instead of the data directory")
	o.queue.Register(f)
	f.StringSliceVar(&o.types, "runtime", defaultTypes(), "runtimes to look at: "+strings.Join(runtimes.Types(), ", "))
	f.DurationVar(&o.olderThan, "older-than", time.Minute, "only what is older goes")
	f.StringVar(&o.imageBudget, "image-budget", "", "`size` that images built here may take, such as 20GiB; 0 keeps none that nothing uses (default all stay)")
	f.BoolVar(&o.unsent, "unsent", false, "also remove bundles that no store took, of which there is no other copy")
	f.BoolVar(&o.dryRun, "dry-run", false, "remove nothing, and say what would go")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// defaultTypes are those whose sandboxes outlive a process.
func defaultTypes() []string {
	return slices.DeleteFunc(runtimes.Types(), func(kind string) bool { return kind == scripted.Type })
}

func (o *options) check() error {
	if o.olderThan < 0 {
		return fmt.Errorf("--older-than %s: want 0s or more", o.olderThan)
	}
	if o.imageBudget != "" {
		size, err := manifest.ParseSize(o.imageBudget)
		if err != nil {
			return fmt.Errorf("--image-budget: %w", err)
		}
		if o.budget = int64(size); o.budget == 0 {
			o.budget = -1
		}
	}
	return nil
}

func (o options) execute(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	if err := o.check(); err != nil {
		return app.Usage(err)
	}
	g, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer app.Closing(&err, g.close)
	items, errs := g.sweeper.Survey(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	failed := make([]error, len(items))
	if !o.dryRun {
		failed = g.sweeper.Remove(ctx, items)
	}
	pruned, err := g.sweeper.Prune(ctx, runtime.PruneOptions{DryRun: o.dryRun, ImageBudget: o.budget})
	errs = append(errs, err)
	r := newReport(g, o.dryRun, time.Now())
	for i, it := range items {
		r.add(it, failed[i])
		if failed[i] != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", it.Resource.Handle.Kind, it.Resource.Name, failed[i]))
		}
	}
	for _, p := range pruned {
		r.addPruned(p)
	}
	if err := r.print(cmd.OutOrStdout(), o.json); err != nil {
		return err
	}
	return errors.Join(errs...)
}
