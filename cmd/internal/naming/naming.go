// SPDX-License-Identifier: Apache-2.0

// Package naming gives runs their ids, and finds those that a command goes on with.
package naming

import (
	"context"
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
	// Unfinished is where runs that were not finished are looked for; nil names every
	// run anew.
	Unfinished bundle.Store
	// Now is the time in the names.
	Now  time.Time
	used []string
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
		if group == "" && n.Unfinished != nil {
			var err error
			if group, err = n.unfinishedGroup(ctx, drafts); err != nil {
				return nil, err
			}
		}
		if group == "" {
			group = n.fresh(name, len(drafts), producer.NewGroupID)
		}
		return members(group, len(drafts)), nil
	}
	if n.RunID != "" {
		return []producer.Options{{RunID: n.RunID}}, nil
	}
	if n.Unfinished != nil {
		found, err := producer.FindUnfinished(ctx, n.Unfinished, drafts[0].Plan.Digest, n.used)
		if err != nil {
			return nil, err
		}
		if found != nil {
			return []producer.Options{{RunID: found.RunID, Group: found.Group}}, nil
		}
	}
	return []producer.Options{{RunID: n.fresh(name, 1, producer.NewRunID)}}, nil
}

// members are the runs of a matrix.
func members(group string, count int) []producer.Options {
	opts := make([]producer.Options, count)
	for i := range opts {
		opts[i] = producer.Options{RunID: member(group, i), Group: group}
	}
	return opts
}

func member(group string, i int) string { return fmt.Sprintf("%s-%d", group, i+1) }

// fresh makes an id of a run's name, with a number in it where this command has given the
// id away: two run files may have one name, and they come within a second.
func (n *Namer) fresh(name string, count int, id func(string, time.Time) string) string {
	made := id(name, n.Now)
	for try := 2; n.taken(made, count); try++ {
		made = id(fmt.Sprintf("%s-%d", name[:min(len(name), 30)], try), n.Now)
	}
	return made
}

// taken reports whether an id, or one of count members of it as a group, is given away.
func (n *Namer) taken(id string, count int) bool {
	if slices.Contains(n.used, id) {
		return true
	}
	for i := range count {
		if slices.Contains(n.used, member(id, i)) {
			return true
		}
	}
	return false
}
