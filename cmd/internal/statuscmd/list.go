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
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// summary is a run in the list.
type summary struct {
	RunID     string    `json:"run_id"`
	Group     string    `json:"group,omitempty"`
	Agent     string    `json:"agent"`
	Runtime   string    `json:"runtime"`
	CreatedAt time.Time `json:"created_at"`
	Tasks     int       `json:"tasks"`
	Trials    int       `json:"trials"`
	Done      int       `json:"done"`
	// State is complete, open, or running where a process works on it.
	State string `json:"state"`
}

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
		if err != nil {
			return nil, err
		}
		s := summarize(rec)
		for info, err := range store.List(ctx, bundle.Keys{Run: id}.Commits()) {
			if err != nil {
				return nil, err
			}
			if _, epoch, ok := bundle.ParseCommitKey(info.Key); ok && epoch == 1 {
				s.Done++ // later epochs are the same trials again
			}
		}
		s.settle()
		runs = append(runs, s)
	}
	slices.SortFunc(runs, func(a, b summary) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.RunID, b.RunID))
	})
	return runs, nil
}

func summarize(rec manifest.RunRecord) summary {
	return summary{
		RunID: rec.RunID, Group: rec.Group, Agent: rec.Run.Agent.Name, Runtime: rec.Run.Runtime.Type,
		CreatedAt: rec.CreatedAt, Tasks: rec.Plan.Tasks, Trials: rec.Plan.Trials,
	}
}

func (s *summary) settle() {
	s.State = "open"
	if s.Done >= s.Trials {
		s.State = "complete"
	}
}

func writeList(w io.Writer, runs []summary) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(w, "no runs yet; make one with tidemill run FILE")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "RUN\tAGENT\tRUNTIME\tTASKS\tTRIALS\tDONE\tSTATE\tCREATED")
	for _, r := range runs {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", r.RunID, r.Agent, r.Runtime, r.Tasks, r.Trials, r.Done, r.State,
			r.CreatedAt.Local().Format(time.DateTime))
	}
	return tw.Flush()
}
