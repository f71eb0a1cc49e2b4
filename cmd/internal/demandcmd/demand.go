// SPDX-License-Identifier: Apache-2.0

// Package demandcmd is tidemill demand: how many slots a fleet could use now.
package demandcmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/internal/health"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

type options struct {
	store  stores.Flags
	queue  queues.Flags
	json   bool
	listen string
	log    *app.LogFlags
}

// Command returns the demand command.
func Command(log *app.LogFlags) *cobra.Command {
	o := options{log: log}
	cmd := &cobra.Command{
		Use:   "demand",
		Short: "Tell how many slots the fleet could use now, for autoscaling",
		Long: `Demand tells for each pool and class of the queue's open runs how many slots could be
kept busy now: trials that wait, run, or are due within a minute, up to the
max_in_flight of each run; a paused run asks for none. A class is what a run needs of
a worker, such as docker or docker-gpu. It needs no worker to be there, and takes
nothing from the queue.

Waiting, running and due trials are counted in full, also those of paused runs.
Workers are the slots of those who serve the pool and class and aren't draining; one
that serves several classes counts in each, and one that lacks a run's secret too:
tidemill status says which.

With --listen it answers HTTP until it is interrupted: / is what --json prints,
/metrics the same for Prometheus, and /?pool=NAME and /?class=NAME a part of it, whose
sums are on top. While the queue can't be reached the answer is 503.
` + app.ExitHelp("told, or interrupted with --listen", "", ""),
		Example: `  tidemill demand --store s3://evals/nightly --queue nats://nats:4222
  tidemill demand --store s3://evals/nightly --queue nats://nats:4222 --json
  tidemill demand --store s3://evals/nightly --queue nats://nats:4222 --listen :8080`,
		Args: app.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.execute(cmd) },
	}
	o.store.Register(cmd)
	o.queue.Register(cmd.Flags())
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().StringVar(&o.listen, "listen", "", "answer HTTP on this `host:port` until interrupted, port 0 for any")
	return cmd
}

func (o options) execute(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	if err := o.queue.Check(); err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(o.listen); o.listen != "" && err != nil {
		return app.Usage(fmt.Errorf("--listen %q: want host:port, such as :8080", o.listen))
	}
	uuid, err := o.storeUUID(ctx)
	if err != nil {
		return err
	}
	q, err := o.queue.Dial(ctx, uuid)
	if err != nil {
		return err
	}
	defer app.Closing(&err, q.Close)
	if o.listen != "" {
		return o.serve(cmd, q)
	}
	r, err := look(ctx, q)
	if err != nil {
		return err
	}
	if o.json {
		return app.PrintJSON(cmd.OutOrStdout(), r)
	}
	return r.write(cmd.OutOrStdout())
}

// storeUUID reads whose queue it is. Nothing else is read of the store.
func (o options) storeUUID(ctx context.Context) (uuid string, err error) {
	store, err := stores.OpenExisting(ctx, o.store.Where())
	if err != nil {
		return "", err
	}
	defer app.Closing(&err, store.Close)
	identity, err := bundle.ReadIdentity(ctx, store)
	return identity.StoreUUID, err
}

func (o options) serve(cmd *cobra.Command, q *natsqueue.Queue) error {
	log, err := o.log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	s, err := health.Serve(o.listen, (&answers{look: func(ctx context.Context) (report, error) { return look(ctx, q) }}).handler())
	if err != nil {
		return app.Usage(fmt.Errorf("--listen: %w", err))
	}
	log.Info().Str("listen", s.Addr()).Msg("demand is told")
	<-cmd.Context().Done()
	return s.Close()
}

func (r report) write(w io.Writer) error {
	if len(r.Demands) == 0 {
		_, err := fmt.Fprintln(w, "no slots: the queue has no open runs")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "POOL\tCLASS\tSLOTS\tWAITING\tRUNNING\tDUE\tWORKERS")
	for _, d := range r.Demands {
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", d.Pool, d.Class, d.Slots, d.Waiting, d.InFlight, d.DueSoon, d.WorkerSlots)
	}
	return tw.Flush()
}
