// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/internal/governor"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/report"
	"github.com/tidemill/tidemill/queue"
)

// Description is one run in detail.
type Description struct {
	summary
	Passed   int `json:"passed"`
	Failed   int `json:"failed"`
	Unscored int `json:"unscored"`
	Missing  int `json:"missing"`
	// Reopened trials were put back and are not done again. They are shown by their
	// earlier outcome.
	Reopened int            `json:"reopened"`
	ByReason map[string]int `json:"by_termination_reason"`
	steered
	// PerMinute is how many trials became done in a minute, lately, and ETA how long the
	// rest takes at that speed, in seconds; 0 where that says nothing, and where nothing
	// that waits can begin.
	PerMinute float64 `json:"per_minute"`
	ETA       float64 `json:"eta_s,omitempty"`
	// CostUSD is what agents reported to have spent, in all attempts.
	CostUSD float64 `json:"cost_usd"`
	// Wasted are attempts that ended and are not the ones that are shown.
	Wasted governor.Spent `json:"wasted"`
	// Live is what the process says that works on the run; nil when none does.
	Live *activity `json:"live"`

	idle bool // nobody works on it
}

type activity struct {
	Slots   int     `json:"slots"`
	Retries int     `json:"retries"`
	ETA     float64 `json:"eta_s,omitempty"`
	// Running are attempts that hold a slot, the oldest first.
	Running []progress.Running `json:"running"`
	// Uploading are attempts whose slot is free already.
	Uploading []progress.Running `json:"uploading"`
	// Workers of a fleet; absent where one process is all there is.
	Workers []member `json:"workers,omitempty"`
	// Queue counts what a fleet's queue has of the run; absent where it isn't open there.
	Queue *queue.Stats `json:"queue,omitempty"`
}

// inFlight is how many of the run's trials hold a place of its max_in_flight.
func (a *activity) inFlight() int {
	if a == nil {
		return 0
	}
	return len(a.Running) + len(a.Uploading)
}

// attach adds what those say who work on this run.
func (d *Description) attach(ctx context.Context, n news) error {
	if d.Done >= d.Trials {
		return nil
	}
	d.look(n)
	d.idle = n.idle
	if n.works(d.RunID) && d.State == producer.StateOpen {
		d.State = stateRunning
	}
	if d.PerMinute > 0 && !d.stands() {
		d.ETA = math.Round(60 * float64(d.Trials-d.Done) / d.PerMinute)
	}
	if n.owner != nil {
		d.attachOwner(n.owner)
		return nil
	}
	if n.fleet == nil {
		return nil
	}
	var err error
	if d.Live, err = n.fleet.describe(ctx, d.RunID, d.asks.Pool); err != nil {
		return err
	}
	if d.lost() {
		d.ETA = 0
		d.HeldUp = append(d.HeldUp, fmt.Sprintf("the queue has none of the %s that aren't done: it lost them, or their submission goes on; tidemill resume %s puts them in",
			app.Count(d.Trials-d.Done, "trial"), d.RunID))
	}
	return nil
}

// lost reports that trials of an open run wait nowhere, and nobody has them.
func (d *Description) lost() bool {
	open := d.Ended == nil && (d.State == producer.StateOpen || d.State == stateRunning)
	return open && (d.Live.Queue == nil || d.Live.Queue.Live() == 0) && len(d.Live.Running)+len(d.Live.Uploading) == 0
}

// stands reports whether nothing that waits can begin: then no speed says when it ends.
func (d *Description) stands() bool {
	return d.State == producer.StatePaused || d.Ended != nil || len(d.HeldUp) > 0 || d.idle
}

func (d *Description) attachOwner(s *progress.Snapshot) {
	c, ok := s.Runs[d.RunID]
	if !ok {
		return
	}
	d.Live = &activity{
		Slots: s.Slots, Retries: c.Retries,
		Running: d.own(s.Running), Uploading: d.own(s.Uploading),
	}
	if !d.stands() {
		d.Live.ETA = s.ETA(time.Now()).Seconds()
	}
}

// own are the attempts of this run.
func (d *Description) own(all []progress.Running) []progress.Running {
	own := []progress.Running{}
	for _, r := range all {
		if r.Run == d.RunID {
			own = append(own, r)
		}
	}
	return own
}

// Write shows it to a person.
func (d *Description) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(key, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t"+format+"\n", append([]any{key}, args...)...)
	}
	row("run", "%s", d.RunID)
	row("state", "%s", d.State)
	for _, c := range []*decision{d.Paused, d.Ended} {
		if c != nil {
			row("", "%s", logview.Visible([]byte(c.words)))
		}
	}
	for _, why := range d.HeldUp {
		row("", "%s", logview.Visible([]byte(why)))
	}
	if d.Group != "" {
		row("group", "%s", d.Group)
	}
	if len(d.Matrix) > 0 {
		row("matrix", "%s", logview.Visible([]byte(trials.Values(d.Matrix))))
	}
	row("created", "%s", d.CreatedAt.Local().Format(time.DateTime))
	row("agent", "%s on %s", d.Agent, d.Runtime)
	if d.Priority != "" && d.Priority != queue.Normal {
		row("priority", "%s", d.Priority)
	}
	if text := d.Limits.words(); text != "" {
		row("limits", "%s", text)
	}
	if most, n := d.Limits.MaxInFlight, d.Live.inFlight(); most > 0 && n > most {
		row("", "%d run, as before the limit was lowered: they go on to their end, and none begins until fewer run", n)
	}
	row("done", "%d of %s (%s)", d.Done, app.Count(d.Trials, "trial"), app.Count(d.Tasks, "task"))
	row("passed", "%d", d.Passed)
	row("failed", "%d", d.Failed)
	rate := report.Percent(d.SuccessRate)
	if d.Reopened > 0 && d.SuccessRate != nil {
		rate += ", with the earlier outcomes of what was put back"
	}
	row("rate", "%s", rate)
	row("unscored", "%d", d.Unscored)
	for _, reason := range slices.Sorted(maps.Keys(d.ByReason)) {
		row("", "%s %d", reason, d.ByReason[reason])
	}
	if d.Reopened > 0 {
		row("put back", "%d, shown by their earlier outcome", d.Reopened)
	}
	d.writeSpent(row)
	if d.Live != nil {
		row("running", "%d of %d slots", len(d.Live.Running), d.Live.Slots)
		for _, r := range d.Live.Running {
			row("", "%s attempt %d: %s, began %s ago", logview.Visible([]byte(trials.Name(r.TaskID, r.TrialIndex))), r.Attempt, r.Phase, app.Took(time.Since(r.Since)))
		}
		if n := len(d.Live.Uploading); n > 0 {
			row("uploading", "%s", app.Count(n, "bundle"))
		}
		d.Live.writeFleet(row)
	}
	eta := d.ETA
	if d.Live != nil && d.Live.ETA > 0 {
		eta = d.Live.ETA // which knows when it began
	}
	switch {
	case len(d.HeldUp) > 0:
		row("eta", "-")
	case eta > 0:
		row("eta", "%s", took(eta))
	}
	return tw.Flush()
}

// took is a number of seconds for people.
func took[S ~float64](seconds S) string {
	return app.Took(time.Duration(float64(seconds) * float64(time.Second)))
}

// writeSpent shows what the run has cost so far, as far as there is something.
func (d *Description) writeSpent(row func(key, format string, args ...any)) {
	if d.CostUSD > 0 {
		row("cost", "%.2f USD", d.CostUSD)
	}
	if d.Wasted.Attempts > 0 {
		row("wasted", "%s that didn't count, %s", app.Count(d.Wasted.Attempts, "attempt"), took(d.Wasted.Seconds))
		for _, reason := range slices.Sorted(maps.Keys(d.Wasted.ByReason)) {
			row("", "%s %d", reason, d.Wasted.ByReason[reason])
		}
		if n := d.Wasted.Unstored; n > 0 {
			row("", "%s", app.Count(n, "failed bundle"))
		}
	}
	for i, worker := range slices.Sorted(maps.Keys(d.Wasted.Lost)) {
		key := ""
		if i == 0 {
			key = "lost"
		}
		l := d.Wasted.Lost[worker]
		row(key, "%s of %s, which died or lost its lease; %s until they began anew", app.Count(l.Attempts, "attempt"), logview.Visible([]byte(worker)), took(l.Seconds))
	}
	if d.Done < d.Trials && d.PerMinute > 0 {
		row("speed", "%.1f a minute", d.PerMinute)
	}
}

// inFlightWords tell how many jobs the queue has given out, and how many of them workers
// say that they run where that is fewer: others are just taken, were handed back, or were a
// worker's that is gone.
func (a *activity) inFlightWords() string {
	words := fmt.Sprintf("%d in flight", a.Queue.InFlight)
	full := slices.ContainsFunc(a.Workers, func(m member) bool { return m.Unnamed })
	if n := a.inFlight(); n < a.Queue.InFlight && !full {
		words += fmt.Sprintf(" (%d of them running)", n)
	}
	return words
}

func (a *activity) writeFleet(row func(key, format string, args ...any)) {
	if a.Queue != nil {
		row("queue", "%d waiting, %d delayed, %s, %d dead", a.Queue.Pending, a.Queue.Delayed, a.inFlightWords(), a.Queue.Dead)
	}
	for i, m := range a.Workers {
		key := ""
		if i == 0 {
			key = "workers"
		}
		text := fmt.Sprintf("%s: %d of %d slots busy, %d with this run", m.Worker, m.Busy, m.Slots, m.Running)
		if m.Draining {
			text += ", draining"
		}
		row(key, "%s", text)
		for _, h := range m.Holds {
			row("", "  takes no work: %s", logview.Visible([]byte(h)))
		}
		if m.Refuses != "" {
			row("", "  takes none of this run: it %s", logview.Visible([]byte(m.Refuses)))
		}
	}
}
