// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/internal/dispatch"
)

// description is one run in detail.
type description struct {
	summary
	Passed   int            `json:"passed"`
	Failed   int            `json:"failed"`
	Unscored int            `json:"unscored"`
	Missing  int            `json:"missing"`
	ByReason map[string]int `json:"by_termination_reason"`
	// Live is what the process says that works on the run; nil when none does.
	Live *live `json:"live"`
}

type live struct {
	Slots   int                `json:"slots"`
	Retries int                `json:"retries"`
	ETA     float64            `json:"eta_s,omitempty"`
	Running []progress.Running `json:"running"`
}

const commitReads = 16

func describe(ctx context.Context, store bundle.Store, runID string) (*description, error) {
	rec, err := dispatch.LoadRun(ctx, store, runID)
	if err != nil {
		return nil, err
	}
	d := &description{summary: summarize(rec), ByReason: map[string]int{}}
	commits := make(chan bundle.Commit)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(commitReads)
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for c := range commits {
			d.count(c)
		}
	}()
	var listErr error
	for info, err := range store.List(gctx, bundle.Keys{Run: runID}.Commits()) {
		if err != nil {
			listErr = err
			break
		}
		g.Go(func() error {
			c, err := bundle.ReadRecord[bundle.Commit](gctx, store, info.Key)
			if err == nil {
				commits <- c
			}
			return err
		})
	}
	err = g.Wait()
	close(commits)
	<-counted
	if err != nil {
		return nil, err
	}
	d.Missing = d.Trials - d.Done
	d.settle()
	return d, listErr
}

func (d *description) count(c bundle.Commit) {
	d.Done++
	d.ByReason[c.Outcome.TerminationReason]++
	switch {
	case !c.Outcome.Scored:
		d.Unscored++
	case c.Grade.BinaryPass:
		d.Passed++
	default:
		d.Failed++
	}
}

// attach adds what the working process says of this run.
func (d *description) attach(s *progress.Snapshot) {
	c, ok := s.Runs[d.RunID]
	if !ok || d.Done >= d.Trials {
		return
	}
	d.State = "running"
	d.Live = &live{Slots: s.Slots, Retries: c.Retries, ETA: s.ETA(time.Now()).Seconds(), Running: []progress.Running{}}
	for _, r := range s.Running {
		if r.Run == d.RunID {
			d.Live.Running = append(d.Live.Running, r)
		}
	}
}

func (d *description) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(key, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t"+format+"\n", append([]any{key}, args...)...)
	}
	row("run", "%s", d.RunID)
	row("state", "%s", d.State)
	if d.Group != "" {
		row("group", "%s", d.Group)
	}
	row("created", "%s", d.CreatedAt.Local().Format(time.DateTime))
	row("agent", "%s on %s", d.Agent, d.Runtime)
	row("done", "%d of %s (%s)", d.Done, app.Count(d.Trials, "trial"), app.Count(d.Tasks, "task"))
	row("passed", "%d", d.Passed)
	row("failed", "%d", d.Failed)
	row("unscored", "%d", d.Unscored)
	for _, reason := range slices.Sorted(maps.Keys(d.ByReason)) {
		row("", "%s %d", reason, d.ByReason[reason])
	}
	if d.Live != nil {
		row("running", "%d of %d slots", len(d.Live.Running), d.Live.Slots)
		for _, r := range d.Live.Running {
			row("", "%s #%d attempt %d: %s for %s", r.TaskID, r.TrialIndex, r.Attempt, r.Phase, time.Since(r.Since).Round(time.Second))
		}
		if d.Live.ETA > 0 {
			row("eta", "%s", time.Duration(d.Live.ETA*float64(time.Second)).Round(time.Second))
		}
	}
	return tw.Flush()
}
