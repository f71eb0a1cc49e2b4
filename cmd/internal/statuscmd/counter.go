// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// commitReads is how many commits are read at once.
const commitReads = 16

// counter counts the trials of a run by what became of them. Looking again reads only
// the commits that came since; of those that it read it keeps a few bytes each.
type counter struct {
	store bundle.Store
	base  summary

	mu      sync.Mutex
	known   map[trialKey]shown
	reasons []string // termination reasons, by number
}

type trialKey [16]byte

// shown is what a trial's commit of its highest epoch says.
type shown struct {
	epoch  uint32
	reason uint16
	state  uint8 // of states
}

var states = []trials.State{trials.Passed, trials.Failed, trials.Unscored}

func newCounter(store bundle.Store, rec manifest.RunRecord) *counter {
	return &counter{store: store, base: summarize(rec), known: map[trialKey]shown{}}
}

// look reads the commits that are new and returns what there is.
func (c *counter) look(ctx context.Context) (*Description, error) {
	// Before the commits: an epoch opens after the commit of the one before it.
	epochs, err := dispatch.Epochs(ctx, c.store, c.base.RunID)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.base.RunID, err)
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
		var key trialKey
		if n, err := hex.Decode(key[:], []byte(id[:min(len(id), 32)])); !ok || err != nil || n != len(key) || c.has(key, epoch) {
			continue
		}
		g.Go(func() error {
			commit, err := bundle.ReadRecord[bundle.Commit](gctx, c.store, info.Key)
			if err == nil {
				c.add(key, epoch, commit)
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
	return c.describe(epochs), nil
}

func (c *counter) has(key trialKey, epoch int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[key].epoch >= uint32(epoch)
}

func (c *counter) add(key trialKey, epoch int, commit bundle.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[key].epoch >= uint32(epoch) {
		return
	}
	state := slices.Index(states, trials.Trial{Commit: &commit}.State())
	reason := slices.Index(c.reasons, commit.Outcome.TerminationReason)
	if reason < 0 {
		reason = len(c.reasons)
		c.reasons = append(c.reasons, commit.Outcome.TerminationReason)
	}
	c.known[key] = shown{epoch: uint32(epoch), state: uint8(state), reason: uint16(reason)}
}

func (c *counter) describe(epochs bundle.Epochs) *Description {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &Description{summary: c.base, ByReason: map[string]int{}}
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
	d.settle()
	return d
}
