// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// rewatchEvery bounds how long a watch that died in silence goes unnoticed.
	rewatchEvery = time.Minute
	// rewatchAfter is the pause after a watch that failed.
	rewatchAfter = 250 * time.Millisecond
)

// followRuns keeps the board as the runs bucket says, until Close. It calls first
// when the board is complete for the first time.
func (q *Queue) followRuns(first func()) {
	for q.life.Err() == nil {
		if q.watchRuns(first) {
			continue
		}
		select {
		case <-q.life.Done():
		case <-q.rewatch:
		case <-time.After(rewatchAfter):
		}
	}
}

// readRunsAnew has the watch begin anew.
func (q *Queue) readRunsAnew() {
	select {
	case q.rewatch <- struct{}{}:
	default:
	}
}

// watchRuns reads all runs and follows their changes. It returns true when it is
// time to do so anew, and false when something is wrong.
func (q *Queue) watchRuns(first func()) bool {
	ctx, cancel := context.WithCancel(q.life)
	defer cancel()
	kv, err := q.kv(ctx, runsBucket)
	if err != nil {
		return false
	}
	w, err := kv.WatchAll(ctx)
	if err != nil {
		return false
	}
	defer drain(w)
	anew := time.NewTimer(rewatchEvery)
	defer anew.Stop()
	present := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-q.rewatch:
			return true
		case <-anew.C:
			return true
		case e, ok := <-w.Updates():
			if !ok {
				return false
			}
			if e == nil { // that was all there is
				q.board.keep(present)
				present = nil
				first()
				continue
			}
			if q.noteRun(e) && present != nil {
				present[e.Key()] = true
			}
		}
	}
}

// noteRun brings one change to the board and to the leases that it ends. It
// reports whether the run is open.
func (q *Queue) noteRun(e jetstream.KeyValueEntry) bool {
	var r openRun
	if e.Operation() == jetstream.KeyValuePut {
		if err := json.Unmarshal(e.Value(), &r); err != nil || r.ID != e.Key() {
			return false // not ours, and nobody could be told
		}
	}
	if e.Operation() != jetstream.KeyValuePut || r.Closing {
		q.board.remove(e.Key())
		q.held.revoke(e.Key(), ^uint64(0))
		return false
	}
	q.board.put(r, e.Revision())
	q.held.revoke(r.ID, r.Purged)
	return true
}

// drain stops a watch and reads what is left, so that its goroutine can end.
func drain(w jetstream.KeyWatcher) {
	_ = w.Stop()
	for {
		select {
		case _, ok := <-w.Updates():
			if !ok {
				return
			}
		case <-time.After(time.Second):
			return
		}
	}
}

func (q *Queue) kv(ctx context.Context, bucket string) (kv jetstream.KeyValue, err error) {
	err = q.call(ctx, "bind to bucket "+bucket, func(ctx context.Context) (err error) {
		kv, err = q.js.KeyValue(ctx, bucket)
		return err
	})
	return kv, err
}
