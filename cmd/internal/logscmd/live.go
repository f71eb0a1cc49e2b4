// SPDX-License-Identifier: Apache-2.0

package logscmd

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/cmd/internal/live"
	"github.com/tidemill/tidemill/cmd/internal/trials"
)

// live shows the logs of an attempt that runs: those of agent and grader side by side,
// as they grow.
func (o options) live(ctx context.Context, cmd *cobra.Command, t trials.Trial) error {
	names := o.names()
	logs := make([]io.ReadCloser, len(names))
	defer func() {
		for _, r := range logs {
			if r != nil {
				r.Close()
			}
		}
	}()
	for i, name := range names {
		var err error
		if logs[i], err = live.Log(ctx, o.store.Where(), t.Row.TrialID, name, o.follow); err != nil {
			return err
		}
	}
	p := o.printer(cmd.OutOrStdout())
	var g errgroup.Group
	if !o.follow {
		g.SetLimit(1) // one after the other
	}
	for i, name := range names {
		g.Go(func() error { return o.show(cmd.OutOrStdout(), p, name, logs[i]) })
	}
	err := errors.Join(g.Wait(), p.End())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
