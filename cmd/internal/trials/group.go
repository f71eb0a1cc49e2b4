// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
)

// Resolve returns the run that a word names, or else the runs of the group of that name
// in their order. What names neither is a usage error.
func Resolve(ctx context.Context, s bundle.Store, word string) ([]manifest.RunRecord, error) {
	rec, err := Load(ctx, s, word)
	if _, unknown := errors.AsType[*dispatch.UnknownRunError](err); !unknown {
		return []manifest.RunRecord{rec}, err
	}
	members, groupErr := group(ctx, s, word)
	if groupErr != nil || len(members) > 0 {
		return members, groupErr
	}
	return nil, err
}

// group returns the runs <name>-<n> that say that they belong together.
func group(ctx context.Context, s bundle.Store, name string) ([]manifest.RunRecord, error) {
	var members []manifest.RunRecord
	for id, err := range bundle.ListRuns(ctx, s) {
		if err != nil {
			return nil, err
		}
		if place(name, id) == 0 {
			continue
		}
		rec, err := dispatch.LoadRun(ctx, s, id)
		if noRun(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if rec.Group == name {
			members = append(members, rec)
		}
	}
	slices.SortFunc(members, func(a, b manifest.RunRecord) int {
		return cmp.Compare(place(name, a.RunID), place(name, b.RunID))
	})
	return members, nil
}

// OnlyGroup makes an error that says so of one of finding what a word names, where it is
// the name of a group and a single run or trial is wanted.
func OnlyGroup(ctx context.Context, s bundle.Store, word, command string, err error) error {
	if err == nil || strings.Contains(word, "/") {
		return err
	}
	members, groupErr := group(ctx, s, word)
	if groupErr != nil || len(members) == 0 {
		return err // which says more
	}
	names := make([]string, 0, maxMembers+1)
	for i, m := range members {
		if i == maxMembers {
			names = append(names, "…")
			break
		}
		names = append(names, m.RunID)
	}
	return app.Usage(app.Hint(fmt.Errorf("%s is a group of %s: %s", word, app.Count(len(members), "run"), strings.Join(names, ", ")),
		"name one of them: tidemill %s %s; tidemill status %s shows them side by side", command, names[0], word))
}

// maxMembers is how many runs of a group are named.
const maxMembers = 10

// place is which run of a group an id is, from 1; 0 for any other id.
func place(group, id string) int {
	number, ok := strings.CutPrefix(id, group+"-")
	if n, err := strconv.Atoi(number); ok && err == nil && n > 0 {
		return n
	}
	return 0
}

// Values shows the matrix values of a run: MODEL=a SIZE=b, or "" without.
func Values(matrix map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(matrix)) {
		parts = append(parts, name+"="+matrix[name])
	}
	return strings.Join(parts, " ")
}
