// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Kinds of control records. What a reader doesn't know it passes over.
const (
	ControlPause    = "pause"
	ControlResume   = "resume"
	ControlCancel   = "cancel"
	ControlPriority = "priority"
	ControlLimits   = "limits"
	ControlRetry    = "retry"
	ControlRegrade  = "regrade"
	ControlStop     = "stop"
)

// ReadControl reads the decisions about a run, in order. One that can't be read is an
// error: nobody knows what it decided.
func ReadControl(ctx context.Context, s Store, keys Keys) ([]Control, error) {
	var names []string
	for info, err := range s.List(ctx, keys.Control()) {
		if err != nil {
			return nil, fmt.Errorf("list control records: %w", err)
		}
		names = append(names, info.Key)
	}
	slices.Sort(names) // revisions have eight digits
	var records []Control
	for rev := 1; rev <= len(names); rev++ {
		key := keys.ControlRecord(rev)
		if _, found := slices.BinarySearch(names, key); !found {
			break // what is left are sidecars
		}
		record, err := ReadRecord[Control](ctx, s, key)
		if err != nil {
			return nil, fmt.Errorf("control record: %w", err)
		}
		if record.Epochs, err = readEpochs(ctx, s, keys, record); err != nil {
			return nil, fmt.Errorf("control record %d: %w", record.Rev, err)
		}
		records = append(records, record)
	}
	return records, nil
}

// AppendControl writes a decision as the next revision and returns it with its number.
// decide gets the decisions that are there and makes the new one from them; it is called
// again when somebody else was faster. An error of decide ends it.
//
// What decide sets as Epochs is written as args.epochs, or as an object of its own before
// the record is, where it is long.
func AppendControl(ctx context.Context, s Store, keys Keys, decide func(before []Control) (Control, error)) (Control, error) {
	for {
		before, err := ReadControl(ctx, s, keys)
		if err != nil {
			return Control{}, err
		}
		c, err := decide(before)
		if err != nil {
			return Control{}, err
		}
		if c.Epochs != nil {
			if c.Args, err = writeEpochs(ctx, s, keys, c); err != nil {
				return Control{}, err
			}
		}
		c.SchemaVersion, c.Rev = SchemaVersion, len(before)+1
		if c.At.IsZero() {
			c.At = time.Now().UTC().Truncate(time.Millisecond)
		}
		err = CreateRecord(ctx, s, keys.ControlRecord(c.Rev), c)
		if errors.Is(err, ErrExists) && ctx.Err() == nil {
			continue
		}
		return c, err
	}
}
