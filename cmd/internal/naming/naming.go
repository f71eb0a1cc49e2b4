// SPDX-License-Identifier: Apache-2.0

// Package naming gives runs their ids, and finds those that a command goes on with.
package naming

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/producer"
)

// Namer names the runs of one command.
type Namer struct {
	// RunID is what the person asked for; it may be empty.
	RunID string
	// Store is where the runs will be. An id that it has is nobody else's default.
	Store bundle.Store
	// Continue goes on with runs of the store that were not finished, where the person
	// gave no id.
	Continue bool
	// Now is the time in the names.
	Now  time.Time
	used []string
}

// maxTries bounds how often a new name is looked for when others keep taking it.
const maxTries = 100

// Submit names the runs that one run file makes and gives them to submit, in order. When
// another process was faster to take a name that was made here, there is another.
func (n *Namer) Submit(ctx context.Context, drafts []*producer.Draft, submit func(*producer.Draft, producer.Options) error) error {
	for try := 1; ; try++ {
		opts, err := n.File(ctx, drafts)
		if err != nil {
			return err
		}
		err = submit(drafts[0], opts[0])
		if _, taken := errors.AsType[*producer.TakenError](err); taken && try < maxTries {
			continue
		}
		for i, d := range drafts[1:] {
			if err != nil {
				return err
			}
			err = submit(d, opts[i+1])
		}
		return err
	}
}

// File names the runs that one run file makes. A single run is <name>-<UTC time>; those
// of a matrix are <group>-<n>.
func (n *Namer) File(ctx context.Context, drafts []*producer.Draft) ([]producer.Options, error) {
	opts, err := n.choose(ctx, drafts)
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		n.used = append(n.used, o.RunID)
	}
	return opts, nil
}

func (n *Namer) choose(ctx context.Context, drafts []*producer.Draft) ([]producer.Options, error) {
	name := drafts[0].Run.Name
	if len(drafts) > 1 {
		group := n.RunID
		if group == "" && n.Continue {
			var err error
			if group, err = n.unfinishedGroup(ctx, drafts); err != nil {
				return nil, err
			}
		}
		if group != "" {
			return members(group, len(drafts), false), nil
		}
		group, err := n.fresh(ctx, name, producer.NewGroupID)
		return members(group, len(drafts), true), err
	}
	if n.RunID != "" {
		return []producer.Options{{RunID: n.RunID}}, nil
	}
	if n.Continue {
		found, err := producer.FindUnfinished(ctx, n.Store, drafts[0].Plan.Digest, n.used)
		if err != nil {
			return nil, err
		}
		if found != nil {
			return []producer.Options{{RunID: found.RunID, Group: found.Group}}, nil
		}
	}
	id, err := n.fresh(ctx, name, producer.NewRunID)
	return []producer.Options{{RunID: id, New: true}}, err
}

// members are the runs of a matrix.
func members(group string, count int, fresh bool) []producer.Options {
	opts := make([]producer.Options, count)
	for i := range opts {
		opts[i] = producer.Options{RunID: member(group, i), Group: group, New: fresh}
	}
	return opts
}

func member(group string, i int) string { return fmt.Sprintf("%s-%d", group, i+1) }

// fresh returns the first id made of a run's name and the time that nobody has: two
// commands, and two run files of one command, may come within a second.
func (n *Namer) fresh(ctx context.Context, name string, id func(string, time.Time, int) string) (string, error) {
	for try := 1; ; try++ {
		made := id(name, n.Now, try)
		if taken, err := n.taken(ctx, made); err != nil || !taken {
			return made, err
		}
	}
}

// taken reports whether a run, or a group, has an id. The first run of a group is always
// there before the others.
func (n *Namer) taken(ctx context.Context, id string) (bool, error) {
	for _, run := range []string{id, member(id, 0)} {
		if slices.Contains(n.used, run) {
			return true, nil
		}
		r, err := n.Store.GetRange(ctx, bundle.Keys{Run: run}.RunFile(), 0, 0)
		if err == nil {
			return true, r.Close()
		}
		if !errors.Is(err, bundle.ErrNotFound) {
			return false, fmt.Errorf("run id %s: %w", run, err)
		}
	}
	return false, nil
}
