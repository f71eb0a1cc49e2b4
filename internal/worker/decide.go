// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

// decision is what follows from an attempt.
type decision struct {
	commit  bool
	charged bool
	dead    bool // committed with a failure after its attempts were used up
	after   time.Duration
	why     string
}

// Where there is no room for a trial, it waits: a quarter of a minute at first, and up to
// five minutes, with full jitter. After so many times, which is about four hours, it is a
// failure to provision like any other and is charged: each time leaves a bundle, and room
// that never comes is a mistake of somebody's.
const (
	capacityShort = 15 * time.Second
	capacityLong  = 5 * time.Minute
	capacityWaits = 100
)

func capacityPause(waits int) time.Duration {
	return jitter(min(capacityShort<<min(waits, 10), capacityLong))
}

// decide applies the outcome table and the run's retry rules. stored says whether the
// bundle reached the store: nothing is committed without its evidence.
func (wk *work) decide(rep trial.Report, stored bool) decision {
	retry := wk.rec.Run.Retry
	tries, charged, waits := 1, 1, 0 // this one among them
	for _, a := range wk.history {
		if a.Claim.Epoch != wk.claim.Epoch {
			continue
		}
		tries++
		switch {
		case a.End == nil:
		case a.End.Charged:
			charged++
		case a.End.Outcome.TerminationReason == bundle.ReasonProvisionError:
			waits++ // all that is not charged of those
		}
	}
	switch {
	case trial.Table[rep.Ending].Retry == trial.OnResume:
		return decision{why: rep.Outcome.Detail}
	case rep.Capacity && waits < capacityWaits:
		return decision{after: capacityPause(waits), why: because("no capacity", rep.Outcome.Detail) + "; tried again, not charged"}
	case !stored:
		// Ours to mend. The wait grows all the same, for each try may cost money.
		return decision{after: Backoff(retry, tries), why: rep.Outcome.Detail + "; tried again, not charged"}
	}
	if rep.Ending == trial.Poisoned {
		return decision{commit: true, charged: true, dead: true, why: "poison: " + rep.Outcome.Detail}
	}
	if !rep.Ending.ShouldRetry(retry.On, rep.Permanent) {
		return decision{commit: true, charged: true, why: "final: " + rep.Outcome.TerminationReason}
	}
	if charged >= retry.MaxAttempts {
		return decision{
			commit: true, charged: true, dead: true,
			why: fmt.Sprintf("%s: all %d attempts are used up", rep.Outcome.TerminationReason, retry.MaxAttempts),
		}
	}
	after := Backoff(retry, charged)
	return decision{
		charged: true, after: after,
		why: fmt.Sprintf("%s; attempt %d of %d follows in %s", because(rep.Outcome.TerminationReason, rep.Outcome.Detail),
			charged+1, retry.MaxAttempts, after.Round(time.Millisecond)),
	}
}

// maxCause is how many bytes of a cause are told with a decision; the outcome has all.
const maxCause = 300

// because is a reason and the beginning of what an outcome says of it, which is redacted
// already.
func because(reason, detail string) string {
	detail, _, _ = strings.Cut(strings.TrimSpace(detail), "\n")
	detail = strings.TrimRight(detail, " \t\r.;")
	if len(detail) > maxCause {
		detail = strings.ToValidUTF8(detail[:maxCause], "") + "…"
	}
	if detail == "" {
		return reason
	}
	return reason + ": " + detail
}

// Backoff is the wait before the retry that follows the nth charged attempt: up to
// min_backoff doubled n-1 times, at most max_backoff, with full jitter, so that trials
// that failed together don't come back together.
func Backoff(r manifest.Retry, n int) time.Duration {
	limit := r.MinBackoff.D()
	for range n - 1 {
		if limit *= 2; limit >= r.MaxBackoff.D() {
			break
		}
	}
	return jitter(min(limit, r.MaxBackoff.D()))
}

func jitter(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return rand.N(limit) + 1
}
