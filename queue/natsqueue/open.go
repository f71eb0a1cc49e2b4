// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

var _ queue.Queue = (*Queue)(nil)

// Queue is one process's value of the queue on a server.
type Queue struct {
	cfg  Config
	nc   *nats.Conn
	owns bool // Close closes nc too
	js   jetstream.JetStream
	id   string // random; where others reach this value

	clock   clock
	board   *board
	book    book
	starts  starts
	held    held
	timers  timers
	inboxes inboxes
	slots   counter // Lease calls that are waiting

	rewatch  chan struct{} // has a token when the runs should be read anew
	stranded chan struct{} // has a token when stranded jobs should be looked for

	life context.Context // ends with Close
	end  context.CancelFunc
	wg   sync.WaitGroup
}

// Open opens the queue on a connection, which has to have MaxReconnects(-1) and
// ReconnectBufSize(-1) and stays the caller's. What is missing on the server is
// created.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Queue, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if nc.Opts.MaxReconnect >= 0 || nc.Opts.ReconnectBufSize >= 0 {
		return nil, fmt.Errorf("%w: NATS connection: want MaxReconnects(-1) and ReconnectBufSize(-1), "+
			"or what was given up in an outage is sent when it ends", queue.ErrInvalid)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(cfg.CallTimeout))
	if err != nil {
		return nil, err
	}
	var id [12]byte
	_, _ = rand.Read(id[:])
	q := &Queue{cfg: cfg, nc: nc, js: js, id: hex.EncodeToString(id[:]), board: newBoard(), rewatch: make(chan struct{}, 1), stranded: make(chan struct{}, 1)}
	q.life, q.end = context.WithCancel(context.Background())
	q.book.q, q.starts.q, q.timers.q, q.inboxes.nc = q, q, q, nc
	q.clock.connected(time.Now())
	if err := q.begin(ctx); err != nil {
		_ = q.Close()
		return nil, err
	}
	return q, nil
}

// begin checks the server, sets up what is missing, and starts what runs until
// Close.
func (q *Queue) begin(ctx context.Context) error {
	if err := q.checkServer(ctx); err != nil {
		return err
	}
	if err := q.setUp(ctx); err != nil {
		return err
	}
	lost, err := q.nc.Subscribe(lostSubject(q.id), func(m *nats.Msg) { q.held.takenOver(string(m.Data)) })
	if err != nil {
		return fmt.Errorf("%w: %w", queue.ErrUnreachable, err)
	}
	news, err := q.nc.Subscribe(newsSubject, func(m *nats.Msg) {
		if !q.board.touch(string(m.Data)) {
			q.readRunsAnew()
		}
	})
	if err != nil {
		return fmt.Errorf("%w: %w", queue.ErrUnreachable, err)
	}
	stranded, err := q.hearStranded()
	if err != nil {
		return fmt.Errorf("%w: %w", queue.ErrUnreachable, err)
	}
	status := q.nc.StatusChanged(nats.CONNECTED)
	q.wg.Go(func() {
		defer q.nc.RemoveStatusListener(status)
		defer func() { _, _, _ = lost.Unsubscribe(), news.Unsubscribe(), stranded.Unsubscribe() }()
		q.followConnection(status)
	})
	q.wg.Go(q.followStranded)
	watched := make(chan struct{})
	q.wg.Go(func() { q.followRuns(sync.OnceFunc(func() { close(watched) })) })
	select {
	case <-watched:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends this value. Its leases end unsaid.
func (q *Queue) Close() error {
	q.end()
	q.timers.stop()
	q.inboxes.close()
	q.wg.Wait()
	if q.owns {
		q.nc.Close()
	}
	return nil
}

// followConnection notes each reconnect, renews at once what this value holds,
// and has the runs read again.
func (q *Queue) followConnection(status <-chan nats.Status) {
	for {
		select {
		case <-q.life.Done():
			return
		case _, ok := <-status:
			if !ok {
				return
			}
		}
		q.clock.connected(time.Now())
		q.readRunsAnew()
		q.renewAll()
	}
}
