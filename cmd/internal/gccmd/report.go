// SPDX-License-Identifier: Apache-2.0

package gccmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/internal/sweep"
	"github.com/tidemill/tidemill/runtime"
)

// Fates of a thing.
const (
	stays   = "stays"
	wouldGo = "would go"
	removed = "removed"
	failed  = "failed"
)

// line is one thing.
type line struct {
	Kind       string     `json:"kind"`
	Runtime    string     `json:"runtime,omitempty"` // empty for files of the worker
	ID         string     `json:"id"`
	Name       string     `json:"name,omitempty"`
	RunID      string     `json:"run_id,omitempty"`
	TaskID     string     `json:"task_id,omitempty"`
	TrialIndex *int       `json:"trial_index,omitempty"`
	TrialID    string     `json:"trial_id,omitempty"`
	Attempt    int        `json:"attempt,omitempty"`
	Worker     string     `json:"worker,omitempty"`
	Bytes      int64      `json:"bytes,omitempty"`
	CreatedAt  *time.Time `json:"created_at,omitempty"`
	AgeS       *float64   `json:"age_s,omitempty"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
	Fate       string     `json:"fate"`
	Why        string     `json:"why"`
	Error      string     `json:"error,omitempty"`
}

// report is what the command found and did.
type report struct {
	Store   string `json:"store_uuid"`
	DryRun  bool   `json:"dry_run"`
	Owner   *owner `json:"owner,omitempty"` // who has the data directory, if somebody else does
	Items   []line `json:"items"`
	Stay    int    `json:"stay"`
	Go      int    `json:"go"` // that were removed, or would be
	Failed  int    `json:"failed"`
	now     time.Time
	verdict string // of what goes
}

type owner struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

func newReport(g *ground, dryRun bool, now time.Time) *report {
	r := &report{Store: g.store, DryRun: dryRun, Items: []line{}, now: now, verdict: removed}
	if dryRun {
		r.verdict = wouldGo
	}
	if o := g.owner; o != nil {
		r.Owner = &owner{o.PID, o.Command, o.Since}
	}
	return r
}

func (r *report) add(it sweep.Item, err error) {
	res, labels := it.Resource, it.Resource.Labels
	l := line{
		Kind: res.Handle.Kind, Runtime: res.Handle.Runtime, ID: res.Handle.ID, Name: res.Name,
		RunID: labels.Run, TaskID: labels.Task, TrialID: labels.Trial, Attempt: labels.Attempt, Worker: labels.Worker,
		Fate: stays, Why: it.Verdict.Why,
	}
	if labels.Task != "" {
		l.TrialIndex = &labels.TrialIndex
	}
	if l.Kind == "unsent" && res.Kept && !it.Verdict.Goes {
		l.Why = "no store took it, and there is no other copy; --unsent removes it"
	}
	if !labels.ExpiresAt.IsZero() {
		l.ExpiresAt = &labels.ExpiresAt
	}
	r.age(&l, res.Created)
	switch {
	case err != nil:
		l.Fate, l.Error = failed, err.Error()
	case it.Verdict.Goes:
		l.Fate = r.verdict
	}
	r.count(l)
}

func (r *report) addPruned(p runtime.Pruned) {
	l := line{Kind: p.Kind, ID: p.ID, Bytes: p.Bytes, Fate: r.verdict, Why: p.Why}
	r.age(&l, p.Used)
	r.count(l)
}

func (r *report) age(l *line, since time.Time) {
	if since.IsZero() {
		return
	}
	seconds := r.now.Sub(since).Round(time.Millisecond).Seconds()
	l.CreatedAt, l.AgeS = &since, &seconds
}

func (r *report) count(l line) {
	r.Items = append(r.Items, l)
	switch l.Fate {
	case stays:
		r.Stay++
	case failed:
		r.Failed++
	default:
		r.Go++
	}
}

func (r *report) print(w io.Writer, asJSON bool) error {
	slices.SortStableFunc(r.Items, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.TrialID, b.TrialID), cmp.Compare(a.ID, b.ID))
	})
	if asJSON {
		return app.PrintJSON(w, r)
	}
	if o := r.Owner; o != nil {
		if o.PID != 0 {
			fmt.Fprintf(w, "%s (process %d) works in the data directory: what is its own stays\n", o.Command, o.PID)
		} else {
			fmt.Fprintln(w, "another process works in the data directory: what is its own stays")
		}
	}
	if len(r.Items) == 0 {
		_, err := fmt.Fprintln(w, "there is nothing")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tTRIAL\tRUN\tAGE\tFATE\tWHY")
	for _, l := range r.Items {
		why := l.Why
		if l.Error != "" {
			why = l.Error
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Kind, visible(l.what()), visible(cmp.Or(l.RunID, "-")), l.age(), l.Fate, visible(why))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d %s, %d stay", r.Go, r.verdict, r.Stay)
	if err == nil && r.Failed > 0 {
		_, err = fmt.Fprintf(w, ", %d failed", r.Failed)
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

// what names a thing: by its trial where it has one.
func (l line) what() string {
	const short = 12 // as everywhere; a label may be anything
	if id := l.TrialID; id != "" {
		return id[:min(short, len(id))]
	}
	return cmp.Or(l.Name, l.ID)
}

func (l line) age() string {
	if l.AgeS == nil {
		return "-"
	}
	d := time.Duration(*l.AgeS * float64(time.Second))
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	case d >= time.Hour:
		return d.Truncate(time.Minute).String()[:len(d.Truncate(time.Minute).String())-2] // without its 0s
	}
	return d.Truncate(time.Second).String()
}

func visible(s string) string { return logview.Visible([]byte(s)) }
