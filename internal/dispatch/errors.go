// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bundle"
)

// UnknownRunError says that a store has no such run.
type UnknownRunError struct {
	Run   string
	Store string   // its URL
	Known []string // some of the runs that it has, sorted
	More  bool     // it may have others
}

func (e *UnknownRunError) Error() string {
	switch {
	case len(e.Known) == 0:
		return fmt.Sprintf("no run %.100q in %s, which has no runs at all", e.Run, e.Store)
	case e.More:
		return fmt.Sprintf("no run %.100q in %s; among those it has are %s", e.Run, e.Store, strings.Join(e.Known, ", "))
	default:
		return fmt.Sprintf("no run %.100q in %s, which has %s", e.Run, e.Store, strings.Join(e.Known, ", "))
	}
}

// BadRunError says that a run's file is there and can't be understood.
type BadRunError struct {
	Run string
	Key string
	Err error
}

func (e *BadRunError) Error() string { return fmt.Sprintf("run %s: %s: %v", e.Run, e.Key, e.Err) }

// Unwrap returns the cause.
func (e *BadRunError) Unwrap() error { return e.Err }

// maxKnown is how many runs are named for the sake of a better error.
const maxKnown = 20

func unknownRun(ctx context.Context, store bundle.Store, runID string) error {
	e := &UnknownRunError{Run: runID, Store: store.URL()}
	for name, err := range bundle.ListRuns(ctx, store) {
		if err != nil {
			return fmt.Errorf("no run %.100q in %s, and its runs can't be listed: %w", runID, store.URL(), err)
		}
		if len(e.Known) == maxKnown {
			e.More = true
			break
		}
		e.Known = append(e.Known, name)
	}
	slices.Sort(e.Known)
	return e
}
