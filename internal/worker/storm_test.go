// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/runtime"
)

// Many trials, many slots, and everything fails now and then: in the end every trial of
// the plan has exactly one commit, and every attempt that could leave evidence did.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []string{
			"print hello", "exit 3", "first 1 lose-sandbox", "sleep 90s\nprint late", "first 1 " + errorStatus,
			"leave-daemon", "flood 20", "sleep 7m", "fill-disk", "no-start",
		}
		var tasks []task
		for i := range 50 {
			tasks = append(tasks, task{id: fmt.Sprintf("task/%d", i), agent: agents[i%len(agents)]})
		}
		l := newLab(t, "repeats: 4\nretry: {max_attempts: 20}\n", tasks...)
		var machines []*machine
		for n := range 4 {
			m := l.machine(func(c *worker.Config) {
				c.Slots, c.Spool, c.DrainTimeout = 8, 4, 10*time.Second
				c.PoisonAfter, c.SpoolBytes, c.PackCache = 3, 1<<20, 1
			})
			l.troubles(m, n)
			machines = append(machines, m.start())
		}
		l.events.kind(worker.Committed, 20)
		machines[0].Hurry() // hands its trials over
		l.events.kind(worker.Committed, 60)
		_ = machines[1].queue.Close() // dies, as far as the others can see
		machines[1].Hurry()
		l.finish(machines...)

		commits := l.commits()
		if len(l.rows) != 200 || len(commits) != len(l.rows) {
			t.Fatalf("%d commits for %d trials", len(commits), len(l.rows))
		}
		attempts := 0
		for n, row := range l.rows {
			c := commits[row.TrialID]
			if n%10 == 0 {
				l.commit(n) // verifies the bundle
			}
			as := l.attempts(n)
			attempts += len(as)
			for _, a := range as {
				if a.End != nil && a.End.Committed != (a.Claim.Attempt == c.Attempt) {
					t.Errorf("attempt %d of %s/%d: %+v, committed is %d", a.Claim.Attempt, row.TaskID, row.TrialIndex, a.End, c.Attempt)
				}
				if a.End != nil && a.End.Outcome.Phase != "upload" && !l.indexed(row, a.Claim.Attempt) {
					t.Errorf("attempt %d of %s/%d has no bundle", a.Claim.Attempt, row.TaskID, row.TrialIndex)
				}
			}
		}
		if attempts < len(l.rows)+20 {
			t.Errorf("%d attempts; where was the storm?", attempts)
		}
	})
}

// troubles makes a machine's surroundings unreliable, each one's in its own way.
func (l *lab) troubles(m *machine, n int) {
	for i := range 60 {
		do := bundletest.Fail(bundle.ErrUnavailable)
		if i%2 == 1 {
			do = bundletest.DropAnswer()
		}
		m.store.Inject(bundletest.Fault{After: 10 + i*(23+n), Times: 1 + i%3, Do: do})
	}
	opened := 0
	m.rt.open = func(_ context.Context, spec *runtime.Spec) error {
		m.rt.mu.Lock()
		opened++
		trouble := opened % 11
		m.rt.mu.Unlock()
		switch trouble {
		case 3:
			panic("a bug in a runtime")
		case 6:
			return script(func(runtime.Labels) string { return "log db up\nfail await_ready not healthy" })(context.Background(), spec)
		case 9:
			return script(func(runtime.Labels) string { return "capacity" })(context.Background(), spec)
		}
		return nil
	}
}
