// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/tidemill/tidemill/cmd/internal/aggregatecmd"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/aggregator"
)

// report aggregates every run, prints what came out, and returns the exit code as an
// error.
func (s *session) report(ctx context.Context, stdout, stderr io.Writer, wasInterrupted bool) error {
	code := app.ExitOK
	for _, rec := range s.runs {
		agg, err := aggregator.Run(ctx, aggregator.Config{
			Store: s.store, RunID: rec.RunID, Log: s.log, GeneratedBy: version.String(), TempDir: s.dir.Temp(),
		})
		if err != nil {
			return err
		}
		if err := aggregatecmd.Print(stdout, agg, s.store.URL(), s.json, s.maxTasks); err != nil {
			return err
		}
		code = max(code, aggregatecmd.Code(agg))
	}
	if wasInterrupted {
		fmt.Fprintln(stderr, "tidemill: interrupted; give the same command again to go on")
		return &app.CodeError{Code: app.ExitInterrupted, Silent: true}
	}
	if code != app.ExitOK {
		return &app.CodeError{Code: code, Silent: true}
	}
	return nil
}
