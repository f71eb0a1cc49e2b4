// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Names on the server; see the layout in natsqueue.
const (
	jobsStream  = "TRIALS"
	leaseStream = "KV_tidemill-leases"
)

// monitor looks at the cluster past every link.
type monitor struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	run string
}

// lookTimeout bounds each question.
const lookTimeout = 2 * time.Second

func newMonitor(t *testing.T, nodes []node, run string) *monitor {
	t.Helper()
	var urls []string
	for _, n := range nodes {
		urls = append(urls, n.URL())
	}
	nc, err := nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.Timeout(time.Second), nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatalf("NATS cluster: %v", err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(lookTimeout))
	if err != nil {
		t.Fatal(err)
	}
	return &monitor{nc: nc, js: js, run: run}
}

// ready reports whether the servers have found each other: somebody leads JetStream, and
// three can be asked to keep a stream.
func (m *monitor) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	const name = "CHAOS-READY"
	s, err := m.js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{"chaos.ready"}, Replicas: 3})
	if err != nil {
		return err
	}
	info, err := s.Info(ctx)
	if err == nil {
		err = whole(name, info.Cluster)
	}
	if err != nil {
		return err
	}
	return m.js.DeleteStream(ctx, name)
}

// leader is who leads the stream of jobs.
func (m *monitor) leader(ctx context.Context, stream string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s, err := m.js.Stream(ctx, stream)
	if err != nil {
		return "", err
	}
	c := s.CachedInfo().Cluster
	if c == nil || c.Leader == "" {
		return "", fmt.Errorf("nobody leads %s", stream)
	}
	return c.Leader, nil
}

// healthy says what keeps the cluster from losing another server: nil is nothing.
func (m *monitor) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*lookTimeout)
	defer cancel()
	names := m.js.StreamNames(ctx)
	count := 0
	for name := range names.Name() {
		count++
		s, err := m.js.Stream(ctx, name)
		if err != nil {
			return err
		}
		if err := whole(name, s.CachedInfo().Cluster); err != nil {
			return err
		}
	}
	if err := names.Err(); err != nil {
		return err
	}
	if count == 0 {
		return fmt.Errorf("no stream is there")
	}
	c, err := m.js.Consumer(ctx, jobsStream, m.run)
	if err != nil {
		return err
	}
	return whole("consumer "+m.run, c.CachedInfo().Cluster)
}

func whole(name string, c *jetstream.ClusterInfo) error {
	switch {
	case c == nil || c.Leader == "":
		return fmt.Errorf("nobody leads %s", name)
	case len(c.Replicas) != 2:
		return fmt.Errorf("%s has %d followers, want 2", name, len(c.Replicas))
	}
	for _, p := range c.Replicas {
		if p.Offline || !p.Current {
			return fmt.Errorf("%s: %s is behind or away", name, p.Name)
		}
	}
	return nil
}

// awaitLeaders returns when jobs and leases are led by somebody who is not the one that
// went.
func (m *monitor) awaitLeaders(ctx context.Context, went string) error {
	for _, stream := range []string{jobsStream, leaseStream} {
		for {
			now, err := m.leader(ctx, stream)
			if err == nil && now != went {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s: leader %q: %w", stream, now, err)
			}
			time.Sleep(20 * time.Millisecond) // nothing tells of an election
		}
	}
	return nil
}

// jobs is what is left in the stream of jobs, and how often jobs were delivered.
func (m *monitor) jobs(ctx context.Context) (left, deliveries uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s, err := m.js.Stream(ctx, jobsStream)
	if err != nil {
		return 0, 0, err
	}
	left = s.CachedInfo().State.Msgs
	c, err := s.Consumer(ctx, m.run)
	switch {
	case err == nil:
		deliveries = c.CachedInfo().Delivered.Consumer
	case errors.Is(err, jetstream.ErrConsumerNotFound): // the run was closed
		err = nil
	}
	return left, deliveries, err
}

// leases are the trials that somebody still holds, as the bucket says.
func (m *monitor) leases(ctx context.Context) (held []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*lookTimeout)
	defer cancel()
	s, err := m.js.Stream(ctx, leaseStream)
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, err
	}
	for subject := range info.State.Subjects {
		msg, err := s.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			continue // it has gone meanwhile
		}
		var h struct {
			Worker string `json:"worker"`
			Ending bool   `json:"ending"`
		}
		if json.Unmarshal(msg.Data, &h) != nil || !h.Ending {
			held = append(held, fmt.Sprintf("%s by %s since %s", subject, h.Worker, msg.Time.Format(time.TimeOnly)))
		}
	}
	return held, nil
}
