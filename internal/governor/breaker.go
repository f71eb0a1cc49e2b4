// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// Defaults of limits.breaker.
const (
	breakerWindow   = 5 * time.Minute
	breakerAttempts = 20
	breakerShare    = 0.5
)

// breaker watches the attempts of one run that end. It learns of them by counts that each
// worker keeps.
type breaker struct {
	last    map[string]queue.Tally // by worker
	sum     queue.Tally
	samples []sample // oldest first
}

type sample struct {
	at time.Time
	queue.Tally
}

// settings of a run's breaker. A run file that says nothing has the defaults.
func settings(b manifest.Breaker) manifest.Breaker {
	b.Window = cmp.Or(b.Window, manifest.Duration(breakerWindow))
	b.MinAttempts = cmp.Or(b.MinAttempts, breakerAttempts)
	b.MaxInfraShare = cmp.Or(b.MaxInfraShare, breakerShare)
	return b
}

// take adds what workers count now. A worker that began before since is new to this
// breaker with all that it counted so far, which may be old: that is left out.
func (b *breaker) take(run string, workers []queue.Presence, since, now time.Time, window time.Duration) {
	if b.last == nil {
		b.last = map[string]queue.Tally{}
	}
	for _, w := range workers {
		count, counted := w.Ended[run]
		if !counted {
			delete(b.last, w.Worker) // it began anew, or forgot
			continue
		}
		before, known := b.last[w.Worker]
		if known || w.Since.After(since) {
			if count.Ended < before.Ended {
				before = queue.Tally{}
			}
			b.sum.Ended += count.Ended - before.Ended
			b.sum.Infra += count.Infra - before.Infra
		}
		b.last[w.Worker] = count
	}
	for len(b.samples) > 1 && now.Sub(b.samples[1].at) >= window {
		b.samples = b.samples[1:]
	}
	b.samples = append(b.samples, sample{now, b.sum})
}

// rest forgets what ended so far: the run is held, and starts with a clean slate.
func (b *breaker) rest() { b.samples = nil }

// trips returns why the run has to be paused, "" while it need not.
func (b *breaker) trips(s manifest.Breaker) string {
	if len(b.samples) == 0 || s.MaxInfraShare >= 1 {
		return ""
	}
	ended := b.sum.Ended - b.samples[0].Ended
	infra := b.sum.Infra - b.samples[0].Infra
	if ended < s.MinAttempts || float64(infra) <= s.MaxInfraShare*float64(ended) {
		return ""
	}
	return fmt.Sprintf("%d of the last %d attempts within %s failed for want of infrastructure, more than %g%%",
		infra, ended, s.Window, 100*s.MaxInfraShare)
}
