// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/manifest"
)

// spender is a store with a run of one trial, whose attempts are recorded as workers do.
type spender struct {
	t     *testing.T
	store bundle.Store
	keys  bundle.Keys
	trial string
}

func newSpender(t *testing.T) *spender {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	s := &spender{t: t, store: memstore.New(), keys: bundle.Keys{Run: "r"}, trial: trialNo(1)}
	if _, err := bundle.OpenIdentity(t.Context(), s.store); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *spender) counter() *counter {
	return newCounter(s.store, manifest.RunRecord{RunID: "r", CreatedAt: time.Now(), Plan: manifest.Plan{Tasks: 1, Trials: 1}})
}

func (s *spender) claim(attempt, epoch int) {
	s.t.Helper()
	c := bundle.Claim{TrialID: s.trial, Epoch: epoch, Worker: "w", Nonce: bundle.NewNonce(), At: time.Now()}
	if got, _, err := bundle.ClaimAttempt(s.t.Context(), s.store, s.keys, c); err != nil || got.Attempt != attempt {
		s.t.Fatalf("attempt %d, want %d: %v", got.Attempt, attempt, err)
	}
}

func (s *spender) end(attempt, epoch int, usd float64, committed bool) {
	s.t.Helper()
	end := bundle.AttemptEnd{Attempt: attempt, Epoch: epoch, Committed: committed, LatencyS: 2}
	if end.Outcome.TerminationReason = "agent_done"; !committed {
		end.Outcome.TerminationReason = "api_error"
	}
	if usd > 0 {
		end.CostUSD = &usd
	}
	if err := bundle.EndAttempt(s.t.Context(), s.store, s.keys, s.trial, end); err != nil {
		s.t.Fatal(err)
	}
}

func (s *spender) commit(attempt, epoch int, usd float64, regraded *bundle.Regraded) {
	s.t.Helper()
	c := bundle.Commit{TrialID: s.trial, TaskID: "a", Epoch: epoch, Attempt: attempt, Nonce: "n", Regraded: regraded, At: time.Now()}
	c.Outcome.TerminationReason, c.Metrics.CostUSD = "agent_done", &usd
	if _, won, err := bundle.WriteCommit(s.t.Context(), s.store, s.keys, c); err != nil || !won {
		s.t.Fatal(won, err)
	}
}

func (s *spender) spent(c *counter, usd float64, wasted int) {
	s.t.Helper()
	d, err := c.look(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if d.CostUSD != usd || d.Wasted.Attempts != wasted || len(d.Wasted.Lost) > 0 {
		s.t.Errorf("cost %v, wasted %+v; want %v, %d wasted and none lost", d.CostUSD, d.Wasted, usd, wasted)
	}
}

// What agents spent counts once: a regrade has no agent, a retry has, and an attempt that
// was committed in an earlier epoch is no waste.
func TestCostCountsOnceInAllEpochs(t *testing.T) {
	s := newSpender(t)
	watching := s.counter()
	both := func(usd float64, wasted int) { // one that watches, and one that comes anew
		t.Helper()
		s.spent(watching, usd, wasted)
		s.spent(s.counter(), usd, wasted)
	}
	s.claim(1, 1)
	s.end(1, 1, 0.25, false) // the provider failed
	both(0.25, 1)
	s.claim(2, 1)
	s.commit(2, 1, 0.5, nil)
	s.end(2, 1, 0.5, true)
	both(0.75, 1)
	s.claim(3, 2) // a regrade
	s.commit(3, 2, 0.5, &bundle.Regraded{Epoch: 1, Attempt: 2})
	s.end(3, 2, 0, true)
	both(0.75, 1)
	s.claim(4, 3) // a retry, whose worker dies before it has written the end
	s.commit(4, 3, 1, nil)
	both(1.75, 1)
	s.claim(5, 4) // another regrade
	s.commit(5, 4, 1, &bundle.Regraded{Epoch: 3, Attempt: 4})
	s.end(5, 4, 0, true)
	both(1.75, 1)
}

// hiding hides commits, as a look does that began before they were written.
type hiding struct {
	bundle.Store
	now bool
}

func (h *hiding) List(ctx context.Context, prefix string) iter.Seq2[bundle.Info, error] {
	if h.now && strings.Contains(prefix, "/commits/") {
		return func(func(bundle.Info, error) bool) {}
	}
	return h.Store.List(ctx, prefix)
}

// One who watches may see an attempt's end before its commit.
func TestAnEndThatIsSeenBeforeItsCommit(t *testing.T) {
	s := newSpender(t)
	h := &hiding{Store: s.store, now: true}
	s.store = h
	s.claim(1, 1)
	s.commit(1, 1, 0.5, nil)
	s.end(1, 1, 0.5, true)
	c := s.counter()
	s.spent(c, 0, 0)
	h.now = false
	s.spent(c, 0.5, 0)
	s.spent(c, 0.5, 0)
}
