// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
)

// endReads is how many ends are read at once.
const endReads = 16

// Ends adds up how the attempts of a run ended. Looking again reads only what came since;
// of what it has read it keeps 8 bytes each.
type Ends struct {
	store bundle.Store
	keys  bundle.Keys

	mu   sync.Mutex
	seen map[uint64]struct{}
	lost map[string]lost // by the key of the claim
	sum  Spent
}

// Spent is what attempts took.
type Spent struct {
	// Attempts that ended without being the one that counts, by their termination
	// reasons, with the seconds that they held a slot.
	Attempts int            `json:"attempts"`
	Seconds  bundle.Seconds `json:"seconds"`
	ByReason map[string]int `json:"by_termination_reason"`
	// Unstored are those of them whose bundle could not be brought to the store.
	Unstored int `json:"failed_bundles"`
	// Unended attempts have no end, and no other attempt came after them: they run, or
	// their worker died just now.
	Unended int `json:"unended"`
	// Lost attempts have no end although another one came after them: their worker died,
	// or lost its lease and could not say so. By the worker's name.
	Lost map[string]Lost `json:"lost"`
	// CostUSD is what agents of all attempts that were read reported to have spent, and
	// WastedUSD that of the attempts which don't count.
	CostUSD   float64 `json:"-"`
	WastedUSD float64 `json:"-"`

	millis, micros, wastedMicros int64
}

// NewEnds looks at a run of a store.
func NewEnds(store bundle.Store, run string) *Ends {
	return &Ends{store: store, keys: bundle.Keys{Run: run}, seen: map[uint64]struct{}{}, lost: map[string]lost{}, sum: Spent{ByReason: map[string]int{}}}
}

// Look reads the ends that are new and returns the sum of all. Attempts that skip tells of
// are known to count: their ends are not read, and they are not lost without one. It may
// be nil.
func (e *Ends) Look(ctx context.Context, skip func(trial string, attempt int) bool) (Spent, error) {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(endReads)
	var listErr error
	open := openClaims{}
	for info, err := range e.store.List(gctx, e.keys.AllAttempts()) {
		if err != nil {
			listErr = err
			break
		}
		trial, n, end, ok := e.keys.ParseAttempt(info.Key)
		if !ok {
			continue
		}
		counts := skip != nil && skip(trial, n)
		open.note(trial, n, end, counts)
		if !end || counts || e.known(info.Key) {
			continue
		}
		g.Go(func() error { return e.read(gctx, info.Key) })
	}
	if err := g.Wait(); err != nil {
		return Spent{}, err
	}
	if listErr != nil {
		return Spent{}, fmt.Errorf("attempts of run %s: %w", e.keys.Run, listErr)
	}
	unended, lost, err := e.lookLost(ctx, open)
	if err != nil {
		return Spent{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sum.Unended, e.sum.Lost = unended, lost
	return e.sum.copied(), nil
}

func hash(key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	return h.Sum64()
}

func (e *Ends) known(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.seen[hash(key)]
	return ok
}

func (e *Ends) read(ctx context.Context, key string) error {
	end, err := bundle.ReadRecord[bundle.AttemptEnd](ctx, e.store, key)
	if errors.Is(err, bundle.ErrNotFound) {
		return nil // gone since it was listed
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[hash(key)] = struct{}{}
	e.sum.add(end)
	return nil
}

func (s *Spent) add(end bundle.AttemptEnd) {
	var micros int64
	if c := end.CostUSD; c != nil && *c > 0 && *c < 1e9 { // an agent's own word
		micros = int64(math.Round(*c * 1e6))
	}
	s.micros += micros
	if end.Committed {
		return
	}
	s.wastedMicros += micros
	s.Attempts++
	s.millis += end.LatencyS.Millis()
	s.ByReason[end.Outcome.TerminationReason]++
	if end.Outcome.Phase == phaseUpload {
		s.Unstored++
	}
}

// phaseUpload is the phase in which an attempt failed whose bundle could not be stored.
const phaseUpload = "upload"

func (s *Spent) copied() Spent {
	c := *s
	c.Seconds = bundle.Seconds(float64(s.millis) / 1000)
	c.CostUSD, c.WastedUSD = float64(s.micros)/1e6, float64(s.wastedMicros)/1e6
	c.Lost = maps.Clone(s.Lost)
	c.ByReason = make(map[string]int, len(s.ByReason))
	for reason, n := range s.ByReason {
		c.ByReason[reason] = n
	}
	return c
}
