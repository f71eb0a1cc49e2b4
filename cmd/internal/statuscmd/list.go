// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/report"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// summary is a run in the list.
type summary struct {
	RunID string `json:"run_id"`
	Group string `json:"group,omitempty"`
	// Matrix has the run's values of its matrix; absent without one.
	Matrix    map[string]string `json:"matrix,omitempty"`
	Agent     string            `json:"agent"`
	Runtime   string            `json:"runtime"`
	CreatedAt time.Time         `json:"created_at"`
	Tasks     int               `json:"tasks"`
	Trials    int               `json:"trials"`
	Done      int               `json:"done"`
	// SuccessRate is that of aggregate.json; nil where there is none yet, and where nothing
	// was scored.
	SuccessRate *float64 `json:"success_rate"`
	// State is complete, cancelled, stopped, paused, open, or running where somebody works on it.
	State string `json:"state"`
	// HeldUp are sentences that say why no worker takes what waits; absent where one does,
	// and where no queue was asked.
	HeldUp []string `json:"held_up,omitempty"`

	asks queue.Run // what it asks of workers; without an id where this version can't tell
}

// stateRunning is an open run's that somebody works on.
const stateRunning = "running"

func list(ctx context.Context, store bundle.Store) ([]summary, error) {
	runs := []summary{}
	for id, err := range bundle.ListRuns(ctx, store) {
		if err != nil {
			return nil, err
		}
		rec, err := dispatch.LoadRun(ctx, store, id)
		if _, ok := errors.AsType[*dispatch.UnknownRunError](err); ok {
			continue
		}
		if err == nil {
			var s summary
			if s, err = count(ctx, store, rec); err == nil {
				runs = append(runs, s)
				continue
			}
		}
		if ctx.Err() != nil {
			return nil, err
		}
		// One run that can't be read must not hide the others.
		runs = append(runs, summary{RunID: id, State: "unreadable: " + err.Error()})
	}
	slices.SortFunc(runs, func(a, b summary) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.RunID, b.RunID))
	})
	return runs, nil
}

// count is a run with what is done of it.
func count(ctx context.Context, store bundle.Store, rec manifest.RunRecord) (summary, error) {
	s := summarize(rec)
	var err error
	if s.SuccessRate, err = successRate(ctx, store, rec.RunID); err != nil {
		return s, err
	}
	var now bundle.ControlState
	if s.Done, now, err = dispatch.LookAt(ctx, store, rec.RunID); err != nil {
		return s, fmt.Errorf("run %s: %w", rec.RunID, err)
	}
	s.settle(now)
	return s, nil
}

func summarize(rec manifest.RunRecord) summary {
	asks, err := dispatch.QueueRun(rec)
	if err != nil {
		asks = queue.Run{Pool: rec.Run.Pool} // of a newer version; there is more to tell
	}
	return summary{
		asks: asks, RunID: rec.RunID, Group: rec.Group, Matrix: rec.Run.Values(), Agent: rec.Run.Agent.Name, Runtime: rec.Run.Runtime.Type,
		CreatedAt: rec.CreatedAt, Tasks: rec.Plan.Tasks, Trials: rec.Plan.Trials,
	}
}

// successRate reads the rate of a run's aggregate.json. One that can't be understood is
// none: the list has more to say.
func successRate(ctx context.Context, store bundle.Store, runID string) (*float64, error) {
	agg, err := bundle.ReadRecord[struct {
		SuccessRate *float64 `json:"success_rate"`
	}](ctx, store, bundle.Keys{Run: runID}.Report(report.AggregateFile))
	if ctx.Err() != nil || errors.Is(err, bundle.ErrUnavailable) {
		return nil, err
	}
	return agg.SuccessRate, nil
}

func (s *summary) settle(now bundle.ControlState) { s.State = producer.State(now, s.Done, s.Trials) }

func writeList(w io.Writer, runs []summary) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(w, "no runs yet; make one with tidemill run FILE")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	heading := "RUN\tAGENT\tRUNTIME\tTASKS\tTRIALS\tDONE\tRATE\tSTATE\tCREATED"
	matrix := slices.ContainsFunc(runs, func(r summary) bool { return len(r.Matrix) > 0 })
	if matrix {
		heading += "\tMATRIX"
	}
	fmt.Fprintln(tw, heading)
	for _, r := range runs {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s", r.RunID, r.Agent, r.Runtime, r.Tasks, r.Trials, r.Done, report.Percent(r.SuccessRate), r.State,
			r.CreatedAt.Local().Format(time.DateTime))
		if matrix {
			fmt.Fprintf(tw, "\t%s", logview.Visible([]byte(trials.Values(r.Matrix))))
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range runs {
		for _, why := range r.HeldUp {
			fmt.Fprintf(w, "%s waits: %s\n", r.RunID, logview.Visible([]byte(why)))
		}
	}
	return nil
}
