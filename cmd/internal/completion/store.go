// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/manifest"
)

const (
	// patience is how long a person who pressed tab waits at most.
	patience = time.Second
	// most is how many completions are worth looking at.
	most = 500
)

// query is what a store is asked on behalf of a shell. Whatever goes wrong, there are no
// completions: an error has no place on somebody's command line.
type query struct {
	ctx   context.Context
	store bundle.Store
	typed string
	out   []cobra.Completion
}

// add offers a completion, and reports whether there is room for more.
func (q *query) add(word, description string) bool {
	if strings.HasPrefix(word, q.typed) && !strings.ContainsAny(word, "\n\t") {
		q.out = append(q.out, cobra.CompletionWithDesc(word, description))
	}
	return len(q.out) < most && q.ctx.Err() == nil
}

// ask opens the store that the command line names and lets do make completions.
func ask(cmd *cobra.Command, typed string, do func(*query)) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if app.FillFlags(cmd, nil) != nil { // variables and config file name stores, too
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	store, err := stores.OpenExisting(ctx, where(cmd))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer store.Close()
	q := &query{ctx: ctx, store: store, typed: typed}
	do(q)
	return q.out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func where(cmd *cobra.Command) string {
	value := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	return cmp.Or(value("store"), value("data"))
}

func (q *query) runs() []manifest.RunRecord {
	list, err := trials.Runs(q.ctx, q.store)
	if err != nil {
		return nil
	}
	return list
}

func (q *query) addRuns() {
	for _, r := range q.runs() {
		if !q.add(r.RunID, app.Count(r.Plan.Trials, "trial")+", agent "+r.Run.Agent.Name) {
			return
		}
	}
}

// rows calls do with the plan of a run until it has enough.
func (q *query) rows(rec manifest.RunRecord, do func(bundle.PlanRow) bool) {
	for part := range rec.Plan.Parts {
		rows, err := bundle.ReadPlanPart(q.ctx, q.store, bundle.Keys{Run: rec.RunID}, part)
		if err != nil {
			return
		}
		for _, r := range rows {
			if !do(r) {
				return
			}
		}
	}
}

// addTrials offers trials by name: those of the newest run, or of the run that was typed;
// and by id where what was typed may be one.
func (q *query) addTrials() {
	list := q.runs()
	if len(list) == 0 {
		return
	}
	rec, prefix := list[0], ""
	if run, _, cut := strings.Cut(q.typed, "/"); cut {
		if i := slices.IndexFunc(list, func(r manifest.RunRecord) bool { return r.RunID == run }); i >= 0 {
			rec, prefix = list[i], run+"/"
		}
	}
	ids := q.typed != "" && strings.Trim(q.typed, "0123456789abcdef") == ""
	q.rows(rec, func(r bundle.PlanRow) bool {
		name := trials.Name(r.TaskID, r.TrialIndex)
		if ids && !q.add(trials.ShortID(r.TrialID), name) {
			return false
		}
		return q.add(prefix+name, trials.ShortID(r.TrialID))
	})
	if prefix != "" || q.typed == "" {
		return
	}
	for _, rec := range list { // a run's id may have been begun
		if strings.HasPrefix(rec.RunID, q.typed) {
			q.rows(rec, func(r bundle.PlanRow) bool {
				return q.add(rec.RunID+"/"+trials.Name(r.TaskID, r.TrialIndex), trials.ShortID(r.TrialID))
			})
		}
	}
}

func runs(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ask(cmd, typed, (*query).addRuns)
}

func trialNames(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ask(cmd, typed, (*query).addTrials)
}

func runsAndTrials(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ask(cmd, typed, func(q *query) {
		q.addRuns()
		q.addTrials()
	})
}

// taskIDs completes --task by the run that was named, else by the newest.
func taskIDs(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ask(cmd, typed, func(q *query) {
		for _, rec := range q.runs() {
			if len(args) > 0 && rec.RunID != args[0] {
				continue
			}
			last := ""
			q.rows(rec, func(r bundle.PlanRow) bool {
				if r.TaskID == last { // another of its trials
					return true
				}
				last = r.TaskID
				return q.add(r.TaskID, "")
			})
			return
		}
	})
}

// execArgs completes the trial; what comes after it is the sandbox's business.
func execArgs(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return trialNames(cmd, args, typed)
}
