// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// Lost is what a worker has lost.
type Lost struct {
	Attempts int `json:"attempts"`
	// Seconds from the beginning of each attempt to that of the one in its place: they
	// were wasted, or waited for the lease to run out.
	Seconds bundle.Seconds `json:"seconds"`
}

// lost is one attempt.
type lost struct {
	worker string
	took   time.Duration
}

// numbered is an attempt of a trial.
type numbered struct {
	trial string
	n     int
}

// openClaims finds the attempts without an end in a listing. Records of one attempt lie
// side by side in most listings, so that few are kept.
type openClaims struct {
	single map[numbered]bool // whether the one record that was listed is the end
	last   map[string]int    // the last attempt of trials that have several
}

// note takes a record of an attempt. One that counts is over, whether or not its end was
// written: its worker may have died in between.
func (o *openClaims) note(trial string, n int, end, counts bool) {
	if o.single == nil {
		o.single, o.last = map[numbered]bool{}, map[string]int{}
	}
	if n > 1 {
		o.last[trial] = max(o.last[trial], n)
	}
	if counts {
		return
	}
	key := numbered{trial, n}
	if _, both := o.single[key]; both {
		delete(o.single, key)
		return
	}
	o.single[key] = end
}

// lookLost tells the attempts that may still run from those that were lost, and reads who
// had them.
func (e *Ends) lookLost(ctx context.Context, open openClaims) (unended int, byWorker map[string]Lost, err error) {
	byWorker = map[string]Lost{}
	for a, end := range open.single {
		switch {
		case end: // its claim is listed the next time
			continue
		case open.last[a.trial] <= a.n:
			unended++
			continue
		}
		l, err := e.readLost(ctx, a)
		if err != nil {
			return 0, nil, err
		}
		sum := byWorker[l.worker]
		sum.Attempts++
		sum.Seconds += bundle.NewSeconds(l.took)
		byWorker[l.worker] = sum
	}
	return unended, byWorker, nil
}

func (e *Ends) readLost(ctx context.Context, a numbered) (lost, error) {
	key := e.keys.Claim(a.trial, a.n)
	e.mu.Lock()
	l, known := e.lost[key]
	e.mu.Unlock()
	if known {
		return l, nil
	}
	was, err := bundle.ReadRecord[bundle.Claim](ctx, e.store, key)
	if err != nil {
		return lost{}, err
	}
	next, err := bundle.ReadRecord[bundle.Claim](ctx, e.store, e.keys.Claim(a.trial, a.n+1))
	if err != nil {
		return lost{}, err
	}
	l = lost{worker: was.Worker, took: max(0, next.At.Sub(was.At))}
	e.mu.Lock()
	e.lost[key] = l
	e.mu.Unlock()
	return l, nil
}
