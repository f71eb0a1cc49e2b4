// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tidemill/tidemill/internal/worker"
)

// A job that comes when the disk has just run full is given back at once, with nothing
// begun, and nothing is asked for until there is room again.
func TestNoRoomWhenAJobComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {max_attempts: 1}\n", passes("a"))
		if _, err := l.queue.PurgeRun(t.Context(), "lab"); err != nil {
			t.Fatal(err)
		}
		var free atomic.Int64
		free.Store(10 << 30)
		m := l.machine(func(c *worker.Config) {
			c.MinFreeDisk = 1 << 30
			c.FreeDisk = func() (int64, error) { return free.Load(), nil }
		}).start()
		synctest.Wait() // it waits for a job
		free.Store(0)
		if err := l.put(t.Context(), 0, 2); err != nil {
			t.Fatal(err)
		}
		l.events.kind(worker.Retrying, 1)
		synctest.Wait()
		if n := len(l.attempts(0)); n != 0 || m.queue.said("hand back") != 1 {
			t.Errorf("%d attempts, said %v", n, m.queue.answers)
		}
		free.Store(10 << 30)
		l.finish(m)
		if c := l.commit(0); c.Attempt != 1 || !c.Outcome.Scored || m.queue.said("hand back") != 1 {
			t.Errorf("attempt %d, %+v, said %v", c.Attempt, c.Outcome, m.queue.answers)
		}
	})
}
