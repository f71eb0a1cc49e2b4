// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/app"
)

// lookInterval is how often the queue is asked whether anything is left, in case that
// the worker's events don't tell: a job may have been buried, or done by a worker of
// another process.
const lookInterval = 500 * time.Millisecond

// await returns when no job of the runs is live any more. That is believed at once where
// the events say that all is done, and else at the second look in a row: jobs that were
// published just now are not counted for a moment.
func (s *session) await(ctx context.Context) error {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	look, idle := true, false
	for {
		if look {
			if err := s.health(); err != nil {
				return err
			}
			live, err := s.live(ctx)
			if err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return cmp.Or(s.health(), err) // why it doesn't answer, if that is known
			}
			if live == 0 && (idle || s.allDone()) {
				return nil
			}
			idle = live == 0
			held, err := s.held(ctx)
			switch {
			case err != nil && ctx.Err() == nil:
				return cmp.Or(s.health(), err)
			case held != nil:
				return held
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			look = true
		case <-s.tracker.Changed():
			look = s.allDone() // then there is no need to wait for the tick
		}
	}
}

// allDone reports whether the events say so.
func (s *session) allDone() bool {
	c := s.tracker.Snapshot().Sum()
	return c.Done >= c.Total
}

// live is how many jobs are left in the queue.
func (s *session) live(ctx context.Context) (int, error) {
	n := 0
	for _, r := range s.runs {
		st, err := s.stats(ctx, r.RunID)
		if err != nil {
			return 0, err
		}
		n += st.Live()
	}
	return n, nil
}

// health reports why the process can't go on: what it stands on is broken for good.
func (s *session) health() error {
	if err := s.dir.Check(); err != nil {
		return broken{app.Hint(err, "what was committed before is where the directory is now; give the same command again")}
	}
	if text := s.sick.Load(); text != nil {
		return broken{app.Hint(fmt.Errorf("the embedded queue gave up: %s", *text),
			"make room on the disk of the data directory, and give the same command again; what is committed stays")}
	}
	return nil
}

// broken marks an error after which running trials aren't waited for.
type broken struct{ error }

func (b broken) Unwrap() error { return b.error }
