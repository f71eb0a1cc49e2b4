// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"

	"github.com/tidemill/tidemill/cmd/internal/aggregatecmd"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/aggregator"
)

// report aggregates every run, prints what came out, and returns the exit code as an
// error.
func (s *session) report(ctx context.Context, wasInterrupted bool) error {
	code := app.ExitOK
	complete := len(s.runs) >= s.planned()
	p := aggregatecmd.Printer{W: s.stdout, StoreURL: s.store.URL(), JSON: s.json, MaxTasks: s.maxTasks}
	for _, rec := range s.runs {
		agg, err := aggregator.Run(ctx, aggregator.Config{
			Store: s.store, RunID: rec.RunID, Log: s.log, GeneratedBy: version.String(), TempDir: s.dir.Temp(),
		})
		if err != nil {
			return err
		}
		if err := p.Print(agg); err != nil {
			return err
		}
		code = max(code, aggregatecmd.Code(agg))
		complete = complete && agg.Complete
	}
	if err := p.Close(); err != nil {
		return err
	}
	// What ran may have been the rest: then there is nothing to go on with.
	if wasInterrupted && !complete {
		return app.Hint(app.ErrInterrupted, "trials that are done stay done; give the same command again to go on")
	}
	return app.Exit(code)
}

// planned is how many runs the command is about.
func (s *session) planned() int {
	n := 0
	for _, ofFile := range s.drafts {
		n += len(ofFile)
	}
	return n
}
