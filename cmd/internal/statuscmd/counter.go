// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/internal/governor"
	"github.com/tidemill/tidemill/manifest"
)

// commitReads is how many commits are read at once.
const commitReads = 16

// counter counts the trials of a run by what became of them. Looking again reads only
// the commits that came since, and those that this user never read before; of each it
// keeps a few bytes.
type counter struct {
	store bundle.Store
	rec   manifest.RunRecord
	base  summary
	ends  *governor.Ends

	mu      sync.Mutex
	cache   *cache // nil before the first look
	known   map[trialKey]shown
	older   map[cacheKey]uint32 // attempts of commits that were counted and aren't of their trial's highest epoch
	reasons []string            // termination reasons, by number
	micros  int64               // what agents of the commits reported to have spent, in micro-dollars
	recent  []time.Time
}

// speedWindow is how much of the past says how fast the run goes.
const speedWindow = 10 * time.Minute

type trialKey [16]byte

// shown is what a trial's commit of its highest epoch says.
type shown struct {
	epoch   uint32
	attempt uint32
	reason  uint16
	state   uint8 // of states
}

var states = []trials.State{trials.Passed, trials.Failed, trials.Unscored}

func newCounter(store bundle.Store, rec manifest.RunRecord) *counter {
	return &counter{
		store: store, rec: rec, base: summarize(rec), known: map[trialKey]shown{},
		older: map[cacheKey]uint32{}, ends: governor.NewEnds(store, rec.RunID),
	}
}

// look reads the commits that are new and returns what there is.
func (c *counter) look(ctx context.Context) (*Description, error) {
	// Before the commits: an epoch opens after the commit of the one before it.
	records, err := bundle.ReadControl(ctx, c.store, bundle.Keys{Run: c.base.RunID})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.base.RunID, err)
	}
	epochs, err := bundle.CurrentEpochs(records)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.base.RunID, err)
	}
	now, err := bundle.FoldControl(records)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.base.RunID, err)
	}
	if c.cache == nil {
		c.cache = openCache(ctx, c.store, c.rec)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(commitReads)
	var listErr error
	for info, err := range c.store.List(gctx, bundle.Keys{Run: c.base.RunID}.Commits()) {
		if err != nil {
			listErr = err
			break
		}
		id, epoch, ok := bundle.ParseCommitKey(info.Key)
		key, isID := parseTrialKey(id)
		if !ok || !isID || c.has(key, epoch) {
			continue
		}
		if o, ok := c.cache.get(key, epoch); ok {
			c.add(key, epoch, o)
			continue
		}
		g.Go(func() error {
			commit, err := bundle.ReadRecord[bundle.Commit](gctx, c.store, info.Key)
			if err == nil {
				c.addRead(key, epoch, commit)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if listErr != nil {
		return nil, fmt.Errorf("commits of run %s: %w", c.base.RunID, listErr)
	}
	c.cache.flush()
	spent, err := c.ends.Look(ctx, c.counts)
	if err != nil {
		return nil, err
	}
	return c.describe(epochs, now, spent), nil
}

// counts reports whether an attempt is one that was committed: in the epoch that is shown
// of its trial, or in one before it.
func (c *counter) counts(trial string, attempt int) bool {
	key, ok := parseTrialKey(trial)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.known[key]
	if now.attempt == uint32(attempt) {
		return true
	}
	for epoch := range now.epoch { // from 0, which is none
		if older, ok := c.older[cacheKey{key, epoch}]; ok && older == uint32(attempt) {
			return true
		}
	}
	return false
}

func parseTrialKey(id string) (key trialKey, ok bool) {
	n, err := hex.Decode(key[:], []byte(id[:min(len(id), 2*len(key))]))
	return key, err == nil && n == len(key)
}

// has tells whether a commit was counted. They come in any order: a trial's later epoch may
// be there before an earlier one, which counts all the same.
func (c *counter) has(key trialKey, epoch int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, older := c.older[cacheKey{key, uint32(epoch)}]
	return older || c.known[key].epoch == uint32(epoch)
}

// addRead counts a commit that was read, and has it written down.
func (c *counter) addRead(key trialKey, epoch int, commit bundle.Commit) {
	o := outcome{
		attempt: uint32(commit.Attempt), state: uint8(slices.Index(states, trials.Trial{Commit: &commit}.State())),
		reason: commit.Outcome.TerminationReason, at: commit.At,
	}
	if usd := commit.Metrics.CostUSD; usd != nil && commit.Regraded == nil && *usd > 0 && *usd < maxCost {
		o.micros = int64(math.Round(*usd * 1e6))
	}
	c.add(key, epoch, o)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cache.put(key, epoch, o)
}

func (c *counter) add(key trialKey, epoch int, o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.micros += o.micros // each commit comes here once
	switch was := c.known[key].epoch; {
	case was > uint32(epoch):
		c.older[cacheKey{key, uint32(epoch)}] = o.attempt
		return
	case was > 0:
		c.older[cacheKey{key, was}] = c.known[key].attempt
	}
	reason := slices.Index(c.reasons, o.reason)
	if reason < 0 {
		reason = len(c.reasons)
		c.reasons = append(c.reasons, o.reason)
	}
	c.known[key] = shown{epoch: uint32(epoch), attempt: o.attempt, state: o.state, reason: uint16(reason)}
	if time.Since(o.at) < speedWindow {
		c.recent = append(c.recent, o.at)
	}
}

// maxCost is the most that is believed of what one agent spent, in US dollars.
const maxCost = 1e9

func (c *counter) describe(epochs bundle.Epochs, now bundle.ControlState, spent governor.Spent) *Description {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &Description{summary: c.base, steered: steer(&c.rec, now), ByReason: map[string]int{}, Wasted: spent}
	// An end may be there before the commit that it tells of was seen: the commit's cost
	// comes with the commit.
	d.CostUSD = float64(c.micros)/1e6 + spent.WastedUSD
	d.PerMinute = c.speed()
	for key, s := range c.known {
		if int(s.epoch) < epochs.Of(hex.EncodeToString(key[:])) {
			d.Reopened++
		} else {
			d.Done++
		}
		d.ByReason[c.reasons[s.reason]]++
		switch states[s.state] {
		case trials.Passed:
			d.Passed++
		case trials.Failed:
			d.Failed++
		default:
			d.Unscored++
		}
	}
	d.Missing = d.Trials - len(c.known)
	if scored := d.Passed + d.Failed; scored > 0 {
		rate := float64(d.Passed) / float64(scored)
		d.SuccessRate = &rate
	}
	d.settle(now)
	return d
}

// speed is how many trials became done in a minute, lately.
func (c *counter) speed() float64 {
	c.recent = slices.DeleteFunc(c.recent, func(at time.Time) bool { return time.Since(at) >= speedWindow })
	span := min(speedWindow, time.Since(c.base.CreatedAt))
	if len(c.recent) == 0 || span <= 0 {
		return 0
	}
	return math.Round(1000*float64(len(c.recent))/span.Minutes()) / 1000
}
