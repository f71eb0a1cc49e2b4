// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/testenv"
)

// checkers is how many trials are compared at once.
const checkers = 8

// check compares what is there with what had to come.
func (r *rig) check() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), 10*time.Minute)
	defer cancel()
	rows, err := r.plan(ctx)
	if err != nil {
		r.problem("the plan can't be read: %v", err)
		return
	}
	commits, err := r.listCommits(ctx)
	if err != nil {
		r.problem("the commits can't be listed: %v", err)
		return
	}
	for trial := range commits {
		if _, planned := rows[trial]; !planned {
			r.problem("trial %s has a commit and is not in the plan", trial)
		}
	}
	found := make(chan finding, len(rows))
	var g errgroup.Group
	g.SetLimit(checkers)
	for trial, row := range rows {
		g.Go(func() error {
			found <- r.checkTrial(ctx, row, commits[trial])
			return nil
		})
	}
	_ = g.Wait()
	close(found)
	for f := range found {
		r.report.add(f)
		for _, p := range f.problems {
			r.problem("%s", p)
		}
	}
	r.checkQueue(ctx)
	r.checkLeft()
}

// plan reads the rows of the plan, by trial.
func (r *rig) plan(ctx context.Context) (map[string]bundle.PlanRow, error) {
	rows := map[string]bundle.PlanRow{}
	keys := bundle.Keys{Run: r.run}
	for part := 0; len(rows) < r.trials; part++ {
		list, err := bundle.ReadPlanPart(ctx, r.store, keys, part)
		if err != nil {
			return nil, err
		}
		for _, row := range list {
			rows[row.TrialID] = row
		}
	}
	if len(rows) != r.trials {
		return nil, fmt.Errorf("%d trials, want %d", len(rows), r.trials)
	}
	return rows, nil
}

// finding is what came of one trial.
type finding struct {
	lost, double, unscored, wrong bool
	attempts, crashed             int
	superseded, handedOver        int
	skewed                        int // claims with a time that is not the machine's
	bundles, without              int // of attempts that ended: that are whole, that left none
	reruns                        []rerun
	problems                      []string
}

// rerun is a trial that ran again after its worker was killed.
type rerun struct {
	Seconds float64 `json:"seconds"`
	Trial   string  `json:"trial"`
	Attempt int     `json:"attempt"`
	// Own is Seconds without those in which the queue had no leader.
	Own float64 `json:"own_seconds"`
	// Meanwhile is what of queue and store was broken in some part of it.
	Meanwhile []kind `json:"meanwhile,omitempty"`
}

func (r *rig) checkTrial(ctx context.Context, row bundle.PlanRow, epochs []int) (f finding) {
	bad := func(format string, args ...any) {
		f.problems = append(f.problems, "trial "+row.TrialID+" ("+row.TaskID+"): "+fmt.Sprintf(format, args...))
	}
	keys := bundle.Keys{Run: r.run}
	attempts, err := bundle.ListAttempts(ctx, r.store, keys, row.TrialID)
	if err != nil {
		bad("%v", err)
	}
	f.attempts = len(attempts)
	var counts *bundle.Commit
	switch {
	case len(epochs) == 0:
		f.lost = true
		bad("lost: it has no commit, and %d attempts", len(attempts))
	case len(epochs) > 1 || epochs[0] != 1:
		f.double = true
		bad("commits of epochs %v, want one of epoch 1", epochs)
	default:
		if counts, err = bundle.FindCommit(ctx, r.store, keys, row.TrialID, 1); err != nil || counts == nil {
			bad("commit can't be read: %v", err)
		}
	}
	if counts != nil {
		wrong := ""
		if wrong, f.unscored = r.deedOf(row).judge(*counts); wrong != "" {
			f.wrong = true
			bad("%s", wrong)
		}
		if counts.TaskID != row.TaskID || counts.TrialIndex != row.TrialIndex {
			bad("its commit is that of %s/%d", counts.TaskID, counts.TrialIndex)
		}
	}
	nonces := map[string]int{}
	for i, a := range attempts {
		if a.Claim.Attempt != i+1 {
			bad("attempts are not numbered without a gap: %d comes as number %d", a.Claim.Attempt, i+1)
		}
		if a.Claim.Nonce == "" || nonces[a.Claim.Nonce] != 0 {
			bad("attempts %d and %d have one nonce", nonces[a.Claim.Nonce], a.Claim.Attempt)
		}
		nonces[a.Claim.Nonce] = a.Claim.Attempt
		r.checkAttempt(ctx, row, a, counts, &f, bad)
	}
	if counts != nil && (counts.Attempt < 1 || counts.Attempt > len(attempts) || attempts[counts.Attempt-1].Claim.Nonce != counts.Nonce) {
		bad("attempt %d is committed, and is not one of the %d that were claimed", counts.Attempt, len(attempts))
	}
	return f
}

func (r *rig) deedOf(row bundle.PlanRow) deed {
	var i int
	_, _ = fmt.Sscanf(row.TaskID, "task-%d", &i)
	return r.deeds[i]
}

// skewedBy is more than a claim takes from its worker to the tap, but for a slow store.
const skewedBy = 3 * time.Second

// checkAttempt looks at the evidence of one attempt.
func (r *rig) checkAttempt(ctx context.Context, row bundle.PlanRow, a bundle.Attempt, counts *bundle.Commit, f *finding, bad func(string, ...any)) {
	n := a.Claim.Attempt
	committed := counts != nil && counts.Attempt == n
	if a.End == nil && !committed {
		f.crashed++
		r.findRerun(row, a, counts, f)
	}
	// A claim says its worker's time, and the tap saw it pass: that shows whether the clocks
	// that are said to jump do.
	if at, ok := r.tap.claimed(row.TrialID, n); ok && a.Claim.At.Sub(at).Abs() > skewedBy {
		f.skewed++
	}
	if a.End != nil && a.End.Committed && !committed {
		bad("attempt %d says that it is committed, but it is not", n)
	}
	if a.End != nil && a.End.Superseded {
		f.superseded++
	}
	if a.End != nil && a.End.Outcome.Status == bundle.Cancelled {
		f.handedOver++
	}
	prefix := bundle.Keys{Run: r.run}.AttemptFiles(row.TaskID, row.TrialIndex, n)
	ix, err := bundle.Verify(ctx, r.store, prefix)
	whole := err == nil
	switch {
	case committed && !whole:
		bad("bundle of attempt %d, which is committed: %v", n, err)
	case committed && ix.SHA256 != counts.IndexSHA256:
		bad("index of attempt %d has sha256 %s, its commit says %s", n, ix.SHA256, counts.IndexSHA256)
	case a.End != nil && a.End.Superseded && !whole:
		bad("bundle of attempt %d, which is superseded: %v", n, err)
	case whole:
		f.bundles++
	case a.End != nil:
		f.without++ // handed over or given up, and then its worker was killed under the upload
	}
}

// findRerun measures how long a trial waited whose worker was killed.
func (r *rig) findRerun(row bundle.PlanRow, a bundle.Attempt, counts *bundle.Commit, f *finding) {
	for _, d := range r.killed {
		if d.worker != a.Claim.Worker {
			continue
		}
		at, ok := r.tap.claimed(row.TrialID, a.Claim.Attempt+1)
		if !ok || at.Before(d.at) { // another attempt was there already, beside it
			return
		}
		f.reruns = append(f.reruns, rerun{
			Seconds: at.Sub(d.at).Seconds(), Own: (at.Sub(d.at) - r.election(d.at, at)).Seconds(),
			Trial: row.TrialID, Attempt: a.Claim.Attempt + 1, Meanwhile: r.meanwhile(d.at, at),
		})
		return
	}
}

// checkQueue: nothing is left of the run but what says that it was there.
func (r *rig) checkQueue(ctx context.Context) {
	r.await("the queue's state", time.Minute, func() error {
		left, _, err := r.monitor.jobs(ctx)
		if err == nil && left != 0 {
			r.problem("%d jobs are in the queue at the end", left)
		}
		return err
	})
	held, err := r.monitor.leases(ctx)
	if err != nil {
		r.problem("the leases can't be read: %v", err)
	}
	for _, h := range held {
		r.problem("a lease is left: %s", h)
	}
}

// checkLeft: nothing runs, nothing lies about.
func (r *rig) checkLeft() {
	// Workers and their helpers have the program in their command line, agents the run in
	// their environment.
	testenv.NoLeaks(r.t, filepath.Join(r.dir, "bin")+string(filepath.Separator))
	testenv.NoLeaks(r.t, "\x00TIDEMILL_RUN_ID="+r.run+"\x00")
	if r.t.Failed() {
		r.problem("processes are left, see above")
	}
	for _, m := range r.members {
		for _, where := range []string{"work", "worker/spool"} {
			names, err := os.ReadDir(filepath.Join(m.dir, ".tidemill", where))
			if err != nil && !os.IsNotExist(err) {
				r.problem("%v", err)
			}
			for _, name := range names {
				if !strings.HasPrefix(name.Name(), ".") {
					r.problem("worker %d left %s/%s", m.n, where, name.Name())
				}
			}
		}
		unsent, _ := os.ReadDir(filepath.Join(m.dir, ".tidemill", "worker", "unsent"))
		for _, u := range unsent {
			if u.IsDir() {
				r.report.Unsent++
			}
		}
	}
}
