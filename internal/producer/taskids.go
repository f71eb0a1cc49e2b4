// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"
	"fmt"

	"github.com/tidemill/tidemill/manifest"
)

// taskIDs are the tasks that a run file selects or excludes by their whole id. One that
// isn't there is a slip, which a pattern that matches nothing need not be.
type taskIDs struct {
	entries []taskIDEntry
	seen    map[string]bool
}

type taskIDEntry struct{ entry, id string }

func newTaskIDs(s manifest.Select) *taskIDs {
	n := &taskIDs{seen: map[string]bool{}}
	for _, list := range []struct {
		key   string
		globs []string
	}{{"select.tasks", s.Tasks}, {"select.exclude", s.Exclude}} {
		for i, glob := range list.globs {
			if id, ok := manifest.GlobLiteral(glob); ok {
				n.entries = append(n.entries, taskIDEntry{fmt.Sprintf("%s[%d]", list.key, i), id})
				n.seen[id] = false
			}
		}
	}
	return n
}

// saw is told the id of every task of every pack.
func (n *taskIDs) saw(id string) {
	if _, ok := n.seen[id]; ok {
		n.seen[id] = true
	}
}

// maxTaskIDs is how many ids that aren't there are told.
const maxTaskIDs = 10

// missing is an error with the ids that no task has. It reads the packs once more, for
// what may be meant, so that who has no problem pays nothing.
func (n *taskIDs) missing(ctx context.Context, file string, packs []*manifest.Pack) error {
	var lost []taskIDEntry
	for _, e := range n.entries {
		if !n.seen[e.id] {
			lost = append(lost, e)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	told := lost[:min(len(lost), maxTaskIDs)]
	near := make([]string, len(told))
	for _, p := range packs {
		for ref, err := range p.Tasks(ctx) {
			if err != nil {
				return err
			}
			for i, e := range told {
				near[i] = manifest.Nearest(e.id, []string{near[i], ref.ID})
			}
		}
	}
	var problems manifest.Problems
	for i, e := range told {
		p := manifest.Problem{File: file, Entry: e.entry, Text: fmt.Sprintf("no task has the id %q", e.id)}
		if p.Fix = "ids are compared whole; * stands for any text"; near[i] != "" {
			p.Fix = "did you mean " + near[i] + "?"
		}
		problems = append(problems, p)
	}
	if more := len(lost) - len(told); more > 0 {
		problems = append(problems, manifest.Problem{File: file, Text: fmt.Sprintf("and %d more ids that no task has", more)})
	}
	return problems
}
