// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// Rebuild puts into the queue what is in the plan and has no commit. It needs nothing but
// the store: a queue that was wiped is as it should be afterwards. What waits or runs
// already stays as it is, so it may be done at any time; of each committed trial 16 bytes
// are kept in memory.
func (p *Producer) Rebuild(ctx context.Context, rec manifest.RunRecord) (Progress, error) {
	sub := &Submission{Record: rec, Continued: true, Progress: Progress{Total: rec.Plan.Trials}}
	s := &submission{Producer: p, sub: sub, keys: bundle.Keys{Run: rec.RunID}, release: laterRelease()}
	err := s.rebuild(ctx)
	if err != nil {
		if _, refused := errors.AsType[*RefusedError](err); !refused {
			err = fmt.Errorf("rebuild: %w", err)
		}
	}
	return sub.Progress, err
}

func (s *submission) rebuild(ctx context.Context) error {
	records, err := bundle.ReadControl(ctx, s.Store, s.keys)
	if err != nil {
		return err
	}
	if s.epochs, err = bundle.CurrentEpochs(records); err != nil {
		return err
	}
	if err := s.openRun(ctx, s.sub.Record); err != nil {
		return err
	}
	if s.done, err = listDone(ctx, s.Store, s.keys, s.epochs); err != nil {
		return err
	}
	for part := range s.sub.Record.Plan.Parts {
		rows, err := bundle.ReadPlanPart(ctx, s.Store, s.keys, part)
		if errors.Is(err, bundle.ErrNotFound) {
			return &RefusedError{
				Text: fmt.Sprintf("run %s: part %d of %d of its plan isn't in the store: its submission was interrupted", s.keys.Run, part, s.sub.Record.Plan.Parts),
				Fix:  "submit the run file again, with --run-id " + s.keys.Run,
			}
		}
		if err != nil {
			return err
		}
		if err := s.enqueue(ctx, part, rows); err != nil {
			return fmt.Errorf("plan part %d: %w", part, err)
		}
		if s.OnProgress != nil {
			s.OnProgress(s.sub.Progress)
		}
	}
	return nil
}

// doneTrials are committed trials, sorted.
type doneTrials [][16]byte

func (d doneTrials) has(trial string) bool {
	var id [16]byte
	if n, err := hex.Decode(id[:], []byte(trial[:min(len(trial), 2*len(id))])); err != nil || n != len(id) {
		return false
	}
	_, found := slices.BinarySearchFunc(d, id, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	return found
}

// listDone lists the trials whose current epoch has its commit: one listing costs less
// than a look for each.
func listDone(ctx context.Context, s bundle.Store, keys bundle.Keys, epochs bundle.Epochs) (doneTrials, error) {
	done := doneTrials{}
	for info, err := range s.List(ctx, keys.Commits()) {
		if err != nil {
			return nil, fmt.Errorf("list commits: %w", err)
		}
		trial, epoch, ok := bundle.ParseCommitKey(info.Key)
		if !ok || epoch != epochs.Of(trial) || len(trial) != 32 {
			continue
		}
		var id [16]byte
		if _, err := hex.Decode(id[:], []byte(trial)); err == nil {
			done = append(done, id)
		}
	}
	slices.SortFunc(done, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	return done, nil
}

// stillOpen takes what was enqueued out again when the run was ended meanwhile. The
// decision is written before the queue is purged for it: either it is seen here, or the
// purge comes after what was published.
func (s *submission) stillOpen(ctx context.Context) error {
	now, err := dispatch.Control(ctx, s.Store, s.keys.Run)
	if err != nil || now.Ended == nil {
		return err
	}
	if _, err := s.Tell(ctx, s.sub.Record, now); err != nil {
		return err
	}
	return Ended(s.keys.Run, now.Ended)
}
