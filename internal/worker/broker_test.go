// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// broker is a server in a process of its own, and the connections of a lab to it.
type broker struct {
	t    *testing.T
	dir  string
	cfg  natsqueue.Config
	nats *player
	url  string
	open []queue.Queue
}

func newBroker(t *testing.T, ttl, settle time.Duration) *broker {
	b := &broker{t: t, dir: t.TempDir(), cfg: natsqueue.Config{
		Store: storeUUID, LeaseTTL: ttl, LeaseSettle: settle, ProbeEvery: 200 * time.Millisecond,
	}}
	b.nats = play(t, "natsd", dirVar+"="+b.dir, listenVar+"=127.0.0.1:0")
	b.url = b.nats.said
	return b
}

func (b *broker) connect() queue.Queue {
	b.t.Helper()
	q, err := natsqueue.Dial(b.t.Context(), b.url, b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.open = append(b.open, q)
	return q
}

// again starts the server where it was; the one before has ended.
func (b *broker) again() {
	b.t.Helper()
	b.nats = play(b.t, "natsd", dirVar+"="+b.dir, listenVar+"="+b.url[len("nats://"):])
}

// end closes the connections and then the server.
func (b *broker) end() {
	b.t.Helper()
	for _, q := range b.open {
		if err := q.Close(); err != nil {
			b.t.Error(err)
		}
	}
	b.nats.stop()
	<-b.nats.ended
}

// answers waits until the server says something again.
func (b *broker) answers(q queue.Queue) (st queue.Stats) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // the connection comes back by itself
		st, err := q.Stats(b.t.Context(), "lab")
		if err == nil {
			return st
		}
		if !errors.Is(err, queue.ErrUnreachable) || time.Now().After(end) {
			b.t.Fatal(err)
		}
	}
}

// firstAttempts wants every trial committed by the only attempt that there was of it.
func (l *lab) firstAttempts() {
	l.t.Helper()
	for n := range l.rows {
		if c := l.commit(n); c.Attempt != 1 || !c.Outcome.Scored || len(l.attempts(n)) != 1 {
			l.t.Errorf("%s: committed attempt %d of %d, %+v", c.TaskID, c.Attempt, len(l.attempts(n)), c.Outcome)
		}
	}
}

// The broker is restarted ten times under 50 running trials, in order and by kill -9, and
// then it loses its disk, and whoever looks after it puts back what has no commit. A third
// worker with free slots is ready to take what seems to be nobody's. Every trial finishes
// in its first attempt.
func TestBrokerRestartsUnderFiftyTrials(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute; not with -short")
	}
	const running = 50
	b := newBroker(t, 5*time.Second, 5*time.Second)
	var tasks []task
	for i := range running {
		tasks = append(tasks, task{id: fmt.Sprint(i), agent: "signal up\nblock end"})
	}
	l := newLabOn(t, memstore.New(), b.connect, "", tasks...)
	first := l.machine(func(c *worker.Config) { c.Slots = 30 }).start()
	second := l.machine(func(c *worker.Config) { c.Slots = 20 }).start()
	for l.control.Reached("", "up") < running {
		time.Sleep(10 * time.Millisecond) // a count tells nobody when it grows
	}
	third := l.machine(func(c *worker.Config) { c.Slots = 10 }).start()
	for n := range 10 {
		if n%2 == 0 {
			b.nats.stop()
			<-b.nats.ended
		} else {
			b.nats.kill()
		}
		b.again()
		if st := b.answers(l.queue); st.Live() < running { // some may be counted twice while they change hands
			t.Fatalf("after restart %d: %+v, want %d live at least", n+1, st, running)
		}
	}
	b.nats.kill()
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	b.again()
	// As tidemill resume does.
	p := producer.Producer{Store: l.store, StoreUUID: storeUUID, Queue: l.queue, Log: zerolog.Nop()}
	for end := time.Now().Add(time.Minute); ; {
		_, err := p.Rebuild(t.Context(), l.rec)
		if err == nil {
			break
		}
		if !errors.Is(err, queue.ErrUnreachable) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	// Owners come back first; let everybody have had the chance to take what is not theirs.
	time.Sleep(b.cfg.LeaseTTL + b.cfg.LeaseSettle)
	if n := l.events.count(worker.Started); n != running {
		t.Errorf("%d attempts were begun, want %d", n, running)
	}
	l.control.Release("", "end")
	l.finish(first, second, third)
	l.firstAttempts()
	b.end()
}

// A trial of ten lease lengths runs once: its worker's heartbeat keeps it, and another
// worker with a free slot never gets it.
func TestTrialOfTenLeases(t *testing.T) {
	b := newBroker(t, time.Second, -1)
	l := newLabOn(t, memstore.New(), b.connect, "", task{id: "long", agent: fmt.Sprintf("sleep %s", 10*b.cfg.LeaseTTL)})
	first, second := l.machine().start(), l.machine().start()
	l.finish(first, second)
	l.firstAttempts()
	if n := l.events.count(worker.Started); n != 1 {
		t.Errorf("%d attempts were begun, want 1", n)
	}
	b.end()
}
