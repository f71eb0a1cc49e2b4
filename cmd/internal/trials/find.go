// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/manifest"
)

// Words is how the help of commands explains what they take as a trial.
const Words = `A trial is named by its id, by the first characters of its id, four or more, or as
TASK#INDEX in the newest run, or as RUN/TASK#INDEX.`

// minPrefix is how many characters of a trial's id a person has to give.
const minPrefix = 4

// idLength is that of a trial id.
const idLength = 32

// Find returns the trial that a word names: by its id, a prefix of that, TASK#INDEX in
// the newest run, or RUN/TASK#INDEX. What names none, or several, is a usage error.
func Find(ctx context.Context, s bundle.Store, word string) (Trial, error) {
	if task, index, ok := SplitName(word); ok {
		return findByName(ctx, s, word, task, index)
	}
	if !isPrefix(word) {
		return Trial{}, noTrial(ctx, s, word, word, noIndex)
	}
	return findByPrefix(ctx, s, word)
}

// SplitName reads TASK#INDEX. Task ids may hold anything, also "#".
func SplitName(word string) (task string, index int, ok bool) {
	at := strings.LastIndexByte(word, '#')
	if at <= 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(word[at+1:])
	if err != nil || n < 0 || strconv.Itoa(n) != word[at+1:] {
		return "", 0, false
	}
	return word[:at], n, true
}

func isPrefix(word string) bool {
	return len(word) >= minPrefix && len(word) <= idLength && strings.Trim(word, "0123456789abcdef") == ""
}

// findByName looks for RUN/TASK#INDEX, and for TASK#INDEX in the newest run: task ids
// have slashes too.
func findByName(ctx context.Context, s bundle.Store, word, task string, index int) (Trial, error) {
	if run, rest, cut := strings.Cut(task, "/"); cut && rest != "" {
		rec, err := ExistingRun(ctx, s, run)
		if err != nil {
			return Trial{}, err
		}
		if rec != nil {
			t, err := named(ctx, s, *rec, rest, index)
			if t != nil || err != nil {
				return deref(t), err
			}
		}
	}
	rec, err := Newest(ctx, s)
	if err != nil {
		return Trial{}, err
	}
	t, err := named(ctx, s, rec, task, index)
	if t != nil || err != nil {
		return deref(t), err
	}
	return Trial{}, noTrial(ctx, s, word, task, index)
}

func deref(t *Trial) Trial {
	if t == nil {
		return Trial{}
	}
	return *t
}

// named returns the trial of a run with this task and index, nil when there is none.
func named(ctx context.Context, s bundle.Store, rec manifest.RunRecord, task string, index int) (*Trial, error) {
	id, err := bundle.ReadIdentity(ctx, s)
	if err != nil {
		return nil, err
	}
	return load(ctx, s, rec, bundle.TrialID(id.StoreUUID, rec.RunID, task, index))
}

// load returns a trial of a run by its id, nil when it has none of it.
func load(ctx context.Context, s bundle.Store, rec manifest.RunRecord, id string) (*Trial, error) {
	epochs, err := epochsOf(ctx, s, rec.RunID)
	if err != nil {
		return nil, err
	}
	keys := bundle.Keys{Run: rec.RunID}
	// The commit knows the place in the plan; without one it has to be looked for.
	commit, err := committed(ctx, s, keys, id, epochs.Of(id))
	if err != nil {
		return nil, err
	}
	first, last := 0, rec.Plan.Parts
	if commit != nil && commit.Plan.Part >= 0 && commit.Plan.Part < last {
		first, last = commit.Plan.Part, commit.Plan.Part+1
	}
	for part := first; part < last; part++ {
		rows, err := bundle.ReadPlanPart(ctx, s, keys, part)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(rows, func(r bundle.PlanRow) bool { return r.TrialID == id }); i >= 0 {
			t, err := fill(ctx, s, rec.RunID, rows[i], epochs.Of(id))
			return &t, err
		}
	}
	return nil, nil
}

// candidate is a trial that a prefix may mean.
type candidate struct{ run, id string }

// maxCandidates is how many of them an error names.
const maxCandidates = 5

func findByPrefix(ctx context.Context, s bundle.Store, prefix string) (Trial, error) {
	runs, err := Runs(ctx, s)
	if err != nil {
		return Trial{}, err
	}
	found, err := begun(ctx, s, runs, prefix)
	if err != nil {
		return Trial{}, err
	}
	if len(found) == 0 { // it may be one that didn't begin
		if found, err = planned(ctx, s, runs, prefix); err != nil {
			return Trial{}, err
		}
	}
	switch len(found) {
	case 0:
		return Trial{}, app.Usage(app.Hint(fmt.Errorf("no trial in %s has an id that begins with %s", s.URL(), prefix),
			"tidemill ls RUN lists the trials of a run"))
	case 1:
		i := slices.IndexFunc(runs, func(r manifest.RunRecord) bool { return r.RunID == found[0].run })
		t, err := load(ctx, s, runs[i], found[0].id)
		if err == nil && t == nil {
			err = fmt.Errorf("trial %s is not in the plan of run %s, although it has records there", found[0].id, found[0].run)
		}
		return deref(t), err
	}
	return Trial{}, ambiguous(ctx, s, runs, prefix, found)
}

// begun returns trials that have an attempt or a commit: their ids are in keys.
func begun(ctx context.Context, s bundle.Store, runs []manifest.RunRecord, prefix string) ([]candidate, error) {
	seen := map[candidate]bool{}
	for _, rec := range runs {
		keys := bundle.Keys{Run: rec.RunID}
		commits := path.Dir(keys.Commit(prefix, 1)) + "/"
		attempts := strings.TrimSuffix(keys.Attempts(prefix), prefix+"/")
		for _, under := range []string{commits, attempts} {
			for info, err := range s.List(ctx, under+prefix) {
				if err != nil {
					return nil, err
				}
				name := strings.TrimPrefix(info.Key, under)
				if len(name) > idLength {
					seen[candidate{rec.RunID, name[:idLength]}] = true
				}
				if len(seen) > maxCandidates {
					return sorted(seen), nil
				}
			}
		}
	}
	return sorted(seen), nil
}

func sorted(seen map[candidate]bool) []candidate {
	return slices.SortedFunc(maps.Keys(seen), func(a, b candidate) int { return strings.Compare(a.id, b.id) })
}

// planned looks through plans, the newest run's first.
func planned(ctx context.Context, s bundle.Store, runs []manifest.RunRecord, prefix string) ([]candidate, error) {
	var found []candidate
	for _, rec := range runs {
		for part := range rec.Plan.Parts {
			rows, err := bundle.ReadPlanPart(ctx, s, bundle.Keys{Run: rec.RunID}, part)
			if err != nil {
				return nil, err
			}
			for _, r := range rows {
				if strings.HasPrefix(r.TrialID, prefix) && len(found) <= maxCandidates {
					found = append(found, candidate{rec.RunID, r.TrialID})
				}
			}
		}
	}
	return found, nil
}

// ambiguous names what a prefix may mean.
func ambiguous(ctx context.Context, s bundle.Store, runs []manifest.RunRecord, prefix string, found []candidate) error {
	var names []string
	for _, c := range found[:min(len(found), maxCandidates)] {
		i := slices.IndexFunc(runs, func(r manifest.RunRecord) bool { return r.RunID == c.run })
		t, err := load(ctx, s, runs[i], c.id)
		if err != nil {
			return err
		}
		name := c.id
		if t != nil {
			name += " (" + c.run + "/" + t.Name() + ")"
		}
		names = append(names, name)
	}
	if len(found) > maxCandidates {
		names = append(names, "others")
	}
	err := errors.New(prefix + " begins the ids of several trials: " + strings.Join(names, ", "))
	return app.Usage(app.Hint(err, "give more of the id"))
}
