// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/internal/report"
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
	// Live is what the process says that works on the run; nil when none does.
	Live *activity `json:"live"`
}

type activity struct {
	Slots   int                `json:"slots"`
	Retries int                `json:"retries"`
	ETA     float64            `json:"eta_s,omitempty"`
	Running []progress.Running `json:"running"`
	// Uploading are attempts whose slot is free already.
	Uploading []progress.Running `json:"uploading"`
}

// attach adds what the working process says of this run.
func (d *Description) attach(s *progress.Snapshot) {
	if s == nil {
		return
	}
	c, ok := s.Runs[d.RunID]
	if !ok || d.Done >= d.Trials {
		return
	}
	d.State = "running"
	d.Live = &activity{
		Slots: s.Slots, Retries: c.Retries, ETA: s.ETA(time.Now()).Seconds(),
		Running: d.own(s.Running), Uploading: d.own(s.Uploading),
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
	if d.Group != "" {
		row("group", "%s", d.Group)
	}
	if len(d.Matrix) > 0 {
		row("matrix", "%s", logview.Visible([]byte(trials.Values(d.Matrix))))
	}
	row("created", "%s", d.CreatedAt.Local().Format(time.DateTime))
	row("agent", "%s on %s", d.Agent, d.Runtime)
	row("done", "%d of %s (%s)", d.Done, app.Count(d.Trials, "trial"), app.Count(d.Tasks, "task"))
	row("passed", "%d", d.Passed)
	row("failed", "%d", d.Failed)
	row("rate", "%s", report.Percent(d.SuccessRate))
	row("unscored", "%d", d.Unscored)
	for _, reason := range slices.Sorted(maps.Keys(d.ByReason)) {
		row("", "%s %d", reason, d.ByReason[reason])
	}
	if d.Reopened > 0 {
		row("put back", "%d, shown by their earlier outcome", d.Reopened)
	}
	if d.Live != nil {
		row("running", "%d of %d slots", len(d.Live.Running), d.Live.Slots)
		for _, r := range d.Live.Running {
			row("", "%s #%d attempt %d: %s for %s", logview.Visible([]byte(r.TaskID)), r.TrialIndex, r.Attempt, r.Phase, time.Since(r.Since).Round(time.Second))
		}
		if n := len(d.Live.Uploading); n > 0 {
			row("uploading", "%s", app.Count(n, "bundle"))
		}
		if d.Live.ETA > 0 {
			row("eta", "%s", time.Duration(d.Live.ETA*float64(time.Second)).Round(time.Second))
		}
	}
	return tw.Flush()
}
