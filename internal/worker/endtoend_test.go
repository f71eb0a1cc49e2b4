// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

// The whole way on a real queue and a real store: trials that pass, that are retried and
// that are handed from a worker to another, on a disk that fails now and then.
func TestEndToEnd(t *testing.T) {
	srv, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), RelaxedSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Shutdown()
	var closers []func()
	defer func() {
		for _, f := range closers {
			f()
		}
	}()
	connect := func() queue.Queue {
		nc, err := srv.Connect()
		if err != nil {
			t.Fatal(err)
		}
		q, err := natsqueue.Open(t.Context(), nc, natsqueue.Config{Store: storeUUID, LeaseSettle: -1})
		if err != nil {
			t.Fatal(err)
		}
		closers = append(closers, func() {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			nc.Close()
		})
		return q
	}
	store, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()

	tasks := []task{
		{id: "held", agent: "on-attempt 1 block held"},
		{id: "retried", agent: "first 1 " + errorStatus},
		{id: "fails", agent: "exit 1", grade: "write verifier/reward.txt 0"},
	}
	for i := range 9 {
		tasks = append(tasks, passes(fmt.Sprintf("plain/%d", i)))
	}
	l := newLabOn(t, store, connect, "repeats: 2\nretry: {min_backoff: 10ms, max_backoff: 50ms}\n", tasks...)
	first := l.machine(func(c *worker.Config) { c.Slots = 2 }).start()
	for n, row := range l.rows {
		if row.TaskID == "held" { // both, or the next worker would have one that nobody lets go
			l.atWork(n, 1)
		}
	}
	first.Hurry()
	first.end()
	second := l.machine(func(c *worker.Config) { c.Slots = 4 })
	second.store.Inject(bundletest.Fault{After: 20, Times: 3, Do: bundletest.Fail(bundle.ErrUnavailable)})
	second.store.Inject(bundletest.Fault{After: 60, Times: 3, Do: bundletest.DropAnswer()})
	start := time.Now()
	l.finish(second.start())
	t.Logf("%d trials in %s", len(l.rows), time.Since(start).Round(time.Millisecond))

	if n := len(l.commits()); n != len(l.rows) {
		t.Fatalf("%d commits for %d trials", n, len(l.rows))
	}
	for n, row := range l.rows {
		c := l.commit(n)
		if !c.Outcome.Scored || c.Grade.BinaryPass != (row.TaskID != "fails") {
			t.Errorf("%s/%d: %+v", row.TaskID, row.TrialIndex, c.Outcome)
		}
	}
	st, err := l.queue.Stats(t.Context(), "lab")
	if err != nil || st != (queue.Stats{}) {
		t.Errorf("left in the queue: %+v, %v", st, err)
	}
}
