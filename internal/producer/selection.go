// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

// Which narrows a selection by the outcome that is shown for a trial.
type Which string

// The outcomes that can be asked for.
const (
	Any      Which = ""
	Failed   Which = "failed"   // scored, and not passed
	Unscored Which = "unscored" // done without a score
)

func (w Which) matches(c *bundle.Commit) bool {
	switch w {
	case Failed:
		return c.Outcome.Scored && !c.Grade.BinaryPass
	case Unscored:
		return !c.Outcome.Scored
	default:
		return true
	}
}

// Selection says which trials of a run are meant. The zero value means all.
type Selection struct {
	// Tasks are globs over task ids.
	Tasks []string
	// Trials are trial ids, or as much of their beginnings as tells them apart.
	Trials []string
	Which  Which
	// Classes are failure classes of the outcome that is shown.
	Classes []string
}

// words are the selection as it is recorded: the same for the same one.
func (s Selection) words() []string {
	var words []string
	for _, t := range s.Tasks {
		words = append(words, "task="+t)
	}
	for _, t := range s.Trials {
		words = append(words, "trial="+t)
	}
	for _, c := range s.Classes {
		words = append(words, "class="+c)
	}
	if s.Which != Any {
		words = append(words, "which="+string(s.Which))
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// flags are the selection as the commands take it.
func (s Selection) flags() []string {
	var flags []string
	for _, w := range s.words() {
		key, value, _ := strings.Cut(w, "=")
		if key == "which" {
			flags = append(flags, "--"+value)
		} else {
			flags = append(flags, "--"+key+" "+value)
		}
	}
	return flags
}

func (s Selection) ofClass(c *bundle.Commit) bool {
	return len(s.Classes) == 0 || slices.Contains(s.Classes, string(c.Outcome.FailureClass))
}

// leastTrial is how much of a trial's id has to be given.
const leastTrial = 4

// named are the trials that a selection names, with the one that each was found to be.
type named map[string]string

func (s Selection) trials() (named, error) {
	n := named{}
	for _, id := range s.Trials {
		if len(id) < leastTrial || strings.Trim(id, "0123456789abcdef") != "" {
			return nil, &RefusedError{Text: fmt.Sprintf("trial %.80q: want at least the first %d characters of a trial's id", id, leastTrial)}
		}
		n[id] = ""
	}
	return n, nil
}

func (s Selection) matches(row bundle.PlanRow, n named) bool {
	if len(s.Tasks) > 0 && !slices.ContainsFunc(s.Tasks, func(g string) bool { return manifest.MatchGlob(g, row.TaskID) }) {
		return false
	}
	if len(s.Trials) == 0 {
		return true
	}
	for id, found := range n {
		if !strings.HasPrefix(row.TrialID, id) {
			continue
		}
		if found != "" && found != row.TrialID {
			found = ambiguous
		} else {
			found = row.TrialID
		}
		n[id] = found
		return true
	}
	return false
}

const ambiguous = "?"

// missed refuses names that no trial has, or several.
func (n named) missed(run string) error {
	for id, found := range n {
		switch found {
		case "":
			return &RefusedError{
				Text: fmt.Sprintf("run %s has no selected trial whose id begins with %s", run, id),
				Fix:  "result.json of a trial has its id, and so have the aggregate's lists",
			}
		case ambiguous:
			return &RefusedError{Text: fmt.Sprintf("run %s has several trials whose ids begin with %s", run, id), Fix: "give more of it"}
		}
	}
	return nil
}

// RefusedError says why something can't be done as it was asked for, and what can.
type RefusedError struct{ Text, Fix string }

func (e *RefusedError) Error() string { return e.Text }
