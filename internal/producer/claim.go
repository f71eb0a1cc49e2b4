// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// maxSameSecond is how many runs of one name may begin within a second.
const maxSameSecond = 100

// claim takes the run id, or finds that the same run has it. Only an id that somebody
// chose goes on with a run; without one the first default id that is free is taken.
func (p *Producer) claim(ctx context.Context, d *Draft, o Options) (rec manifest.RunRecord, continued bool, err error) {
	now := time.Now().UTC()
	for n := 1; ; n++ {
		id := o.RunID
		if id == "" {
			id = NewRunID(d.Run.Name, now, n)
		}
		rec := manifest.RunRecord{
			SchemaVersion: bundle.SchemaVersion, RunID: id, Group: o.Group, CreatedAt: now.Truncate(time.Millisecond), Nonce: bundle.NewNonce(),
			Producer: p.Version, Plan: d.Plan, Packs: d.Packs, AgentFiles: d.AgentFiles, Asks: d.Asks, Run: *d.Run,
		}
		old, err := p.take(ctx, rec)
		switch {
		case err != nil:
			return rec, false, err
		case old == nil:
			return rec, false, nil
		case o.RunID == "" && n < maxSameSecond: // the next one, then
		case o.RunID == "" || o.New:
			return rec, false, &TakenError{RunID: id}
		case old.Plan.Digest != d.Plan.Digest:
			return rec, false, &PlanConflictError{RunID: id, Keys: manifest.DiffRuns(*old, rec)}
		default:
			return *old, true, nil
		}
	}
}

// take writes run.yaml, or returns the one that was there before.
func (p *Producer) take(ctx context.Context, rec manifest.RunRecord) (old *manifest.RunRecord, err error) {
	if _, err := dispatch.QueueRun(rec); err != nil {
		return nil, err // names what is wrong before the id is taken
	}
	body, err := dispatch.EncodeRun(rec)
	if err != nil {
		return nil, err
	}
	_, err = p.Store.Create(ctx, bundle.Keys{Run: rec.RunID}.RunFile(), body)
	if err == nil {
		return nil, nil
	}
	if !errors.Is(err, bundle.ErrExists) && !errors.Is(err, bundle.ErrUnavailable) {
		return nil, fmt.Errorf("run %s: %w", rec.RunID, err)
	}
	there, loadErr := dispatch.LoadRun(ctx, p.Store, rec.RunID)
	if loadErr != nil {
		if errors.Is(err, bundle.ErrExists) {
			err = loadErr
		}
		return nil, fmt.Errorf("run %s: %w", rec.RunID, err)
	}
	// Our own, whose answer was lost, is nobody else's.
	if same, err := dispatch.EncodeRun(there); err == nil && bytes.Equal(same, body) {
		return nil, nil
	}
	return &there, nil
}
