// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// These need servers of their own, which can be killed, lose their disk and be cut off.

// dialled opens a value as a process of a fleet does.
func dialled(t *testing.T, urls string, change ...func(*natsqueue.Config)) *natsqueue.Queue {
	t.Helper()
	cfg := testConfig()
	cfg.LeaseTTL, cfg.LeaseSettle, cfg.CallTimeout = 20*time.Second, 3*time.Second, 2*time.Second
	for _, c := range change {
		c(&cfg)
	}
	var q *natsqueue.Queue
	persist(t, "dial", func() (err error) {
		q, err = natsqueue.Dial(t.Context(), urls, cfg, nats.ReconnectWait(100*time.Millisecond))
		return err
	})
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// beating renews leases as their holders do, until the test or stop ends it.
func beating(t *testing.T, leases []queue.Lease) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, l := range leases {
		wg.Go(func() {
			for {
				if err := l.Extend(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, queue.ErrUnreachable) {
					t.Errorf("extend %s: %v", l.Job().ID, err)
					return
				}
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Second): // a heartbeat
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// A server that is killed in the middle of everything costs no running trial, and nothing
// that was put in: neither what was delivered long ago nor what was delivered just now,
// which the server forgets.
func TestServerKilled(t *testing.T) {
	node := testenv.NATS(t)
	one, thief := dialled(t, node.URL()), dialled(t, node.URL())
	names := fiftyJobs()[:20]
	fill(t, one, names...)
	leases := holders(t, 10, one)
	stop := beating(t, leases)
	for range 3 {
		if len(leases) < 16 {
			leases = append(leases, holders(t, 2, one)...)
		}
		node.Kill() // right after a delivery
		node.Start()
	}
	for _, l := range leases {
		persist(t, "extend", func() error { return l.Extend(t.Context()) })
	}
	stop()
	alive(t, leases)
	endAll(t, leases)
	// The rest is there, and nothing else.
	seen := map[string]bool{}
	for range len(names) - len(leases) {
		l := lease(t, thief, "b")
		seen[l.Job().Trial] = true
		persist(t, "done", func() error { return l.Done(t.Context()) })
	}
	var got queue.Stats
	persist(t, "stats", func() (err error) { got, err = one.Stats(t.Context(), "r"); return err })
	if len(seen) != len(names)-len(leases) || got.Live() != 0 {
		t.Fatalf("%v were leased and %+v is left, want %d others and nothing", seen, got, len(names)-len(leases))
	}
}

// A cluster of three loses its leader, a node's disk, and a node's network, one after the
// other, while trials are held and others are worked off. All are done, and none of the
// held ones is taken from its holder.
func TestClusterLosesNodes(t *testing.T) {
	nodes := testenv.NATSCluster(t)
	var urls []string
	for _, n := range nodes {
		urls = append(urls, n.URL())
	}
	all := strings.Join(urls, ",")
	// It begins with one copy, and becomes what it has to be while it is in use.
	first := dialled(t, all)
	if err := first.OpenRun(t.Context(), anyRun); err != nil {
		t.Fatal(err)
	}
	three := func(c *natsqueue.Config) { c.Replicas = 3; c.CallTimeout = 5 * time.Second }
	one, two := dialled(t, all, three), dialled(t, all)
	nc, err := nats.Connect(all, nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	streams := []string{"TRIALS", "DEAD", "STRANDED", "KV_tidemill-runs", "KV_tidemill-leases", "KV_tidemill-starts"}
	for _, name := range streams {
		var got int
		persist(t, "look at "+name, func() error {
			s, err := js.Stream(t.Context(), name)
			if err != nil {
				return fmt.Errorf("%w: %w", queue.ErrUnreachable, err)
			}
			got = s.CachedInfo().Config.Replicas
			return nil
		})
		if got != 3 {
			t.Errorf("stream %s has %d replicas, want 3", name, got)
		}
	}
	caughtUp(t, js, streams)

	const n = 400
	names := make([]queue.Job, n)
	for i := range names {
		names[i] = trial(fmt.Sprint("t", i))
	}
	persist(t, "publish", func() error { _, err := one.Publish(t.Context(), "r", names); return err })
	held := holders(t, 10, one, two)
	stop := beating(t, held)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan string, 4*n)
	var wg sync.WaitGroup
	for _, q := range []*natsqueue.Queue{one, two} {
		wg.Go(func() { worker(ctx, t, q, done) })
	}
	defer wg.Wait()
	defer cancel()
	seen := map[string]bool{}
	until := func(want int) {
		t.Helper()
		patience := time.After(2 * time.Minute)
		for len(seen) < want {
			select {
			case got := <-done:
				seen[got] = true
			case <-patience:
				t.Fatalf("%d trials were done, want %d", len(seen), want)
			}
		}
	}
	leader := func() *testenv.NATSNode {
		t.Helper()
		var name string
		persist(t, "find the leader", func() error {
			s, err := js.Stream(t.Context(), "TRIALS")
			if err != nil || s.CachedInfo().Cluster == nil || s.CachedInfo().Cluster.Leader == "" {
				return fmt.Errorf("%w: no leader, %w", queue.ErrUnreachable, err)
			}
			name = s.CachedInfo().Cluster.Leader
			return nil
		})
		for _, node := range nodes {
			if node.Name() == name {
				return node
			}
		}
		t.Fatalf("the leader %q is none of ours", name)
		return nil
	}
	until(20)
	for i, disaster := range []struct {
		name       string
		begin, end func(*testenv.NATSNode)
	}{
		{"stop", (*testenv.NATSNode).Stop, (*testenv.NATSNode).Start},
		{"kill", (*testenv.NATSNode).Kill, (*testenv.NATSNode).Start},
		{"wipe", func(*testenv.NATSNode) {}, (*testenv.NATSNode).Wipe},
		{"disconnect", (*testenv.NATSNode).Disconnect, (*testenv.NATSNode).Reconnect},
	} {
		node := leader()
		t.Logf("%s of the leader %s", disaster.name, node.Name())
		disaster.begin(node)
		until(20 + 30*i + 15)
		disaster.end(node)
		until(20 + 30*i + 30)
		alive(t, held)
		caughtUp(t, js, streams)
	}
	stop()
	alive(t, held)
	endAll(t, held)
	until(n - len(held))
	for _, l := range held {
		if seen[l.Job().Trial] {
			t.Errorf("%s was done by somebody else", l.Job().ID)
		}
	}
}

// caughtUp waits until every node has everything, as whoever restarts a cluster must.
func caughtUp(t *testing.T, js jetstream.JetStream, streams []string) {
	t.Helper()
	behind := func() string {
		for _, name := range streams {
			s, err := js.Stream(t.Context(), name)
			if err != nil || s.CachedInfo().Cluster == nil || s.CachedInfo().Cluster.Leader == "" {
				return name
			}
			for _, peer := range s.CachedInfo().Cluster.Replicas {
				if !peer.Current || peer.Offline {
					return name + " on " + peer.Name
				}
			}
		}
		return ""
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) { // the server tells nobody when it is done
		what := behind()
		if what == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s never caught up", what)
		}
	}
}
