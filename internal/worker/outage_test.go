// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// The broker is killed under ten running trials, stays away for longer than a lease lives,
// and comes back. Every trial finishes in its first attempt, on whichever side of the
// outage its agent ends.
func TestBrokerIsKilledUnderTrials(t *testing.T) {
	dir := t.TempDir()
	nats := play(t, "natsd", dirVar+"="+dir, listenVar+"=127.0.0.1:0")
	cfg := natsqueue.Config{Store: storeUUID, LeaseTTL: 3 * time.Second, LeaseSettle: 3 * time.Second, ProbeEvery: 200 * time.Millisecond}
	var open []queue.Queue
	connect := func() queue.Queue {
		q, err := natsqueue.Dial(t.Context(), nats.said, cfg)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, q)
		return q
	}
	defer func() {
		for _, q := range open {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	var tasks []task
	for i := range 10 {
		tasks = append(tasks, task{id: fmt.Sprint(i), agent: fmt.Sprintf("signal up\nblock %d", i%2)})
	}
	l := newLabOn(t, memstore.New(), connect, "", tasks...)
	// Two workers: each would take what it believes to be the other's loss.
	first := l.machine(func(c *worker.Config) { c.Slots = 5 }).start()
	second := l.machine(func(c *worker.Config) { c.Slots = 8 }).start()
	for l.control.Reached("", "up") < 10 {
		time.Sleep(10 * time.Millisecond) // a count tells nobody when it grows
	}
	nats.kill()
	// The outage lasts longer than a lease. That is a length of time and nothing to wait for.
	time.Sleep(2 * cfg.LeaseTTL)
	l.control.Release("", "0") // half of the trials end while nobody hears of it
	for n := range 5 {
		l.events.kind(worker.Committed, n+1)
	}
	nats = play(t, "natsd", dirVar+"="+filepath.Clean(dir), listenVar+"="+nats.said[len("nats://"):])
	// Owners come back first; let everybody have had the chance to take what is not theirs.
	time.Sleep(2 * cfg.LeaseTTL)
	l.control.Release("", "1")
	l.finish(first, second)
	for n := range l.rows {
		if c := l.commit(n); c.Attempt != 1 || !c.Outcome.Scored || len(l.attempts(n)) != 1 {
			t.Errorf("%s: attempt %d of %d, %+v", c.TaskID, c.Attempt, len(l.attempts(n)), c.Outcome)
		}
	}
	nats.stop()
	<-nats.ended
}
