// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

// UnknownRunError says that a store has no such run.
type UnknownRunError struct {
	RunID string
	Store string   // its URL
	Known []string // some of the runs that it has, sorted
	More  bool     // it may have others
}

func (e *UnknownRunError) Error() string {
	switch {
	case len(e.Known) == 0:
		return fmt.Sprintf("no run %q in %s, which has no runs at all", e.RunID, e.Store)
	case e.More:
		return fmt.Sprintf("no run %q in %s; among those it has are %s", e.RunID, e.Store, strings.Join(e.Known, ", "))
	default:
		return fmt.Sprintf("no run %q in %s, which has %s", e.RunID, e.Store, strings.Join(e.Known, ", "))
	}
}

// maxRunFile bounds run.yaml, in bytes.
const maxRunFile = 16 << 20

// readRun reads run.yaml.
func readRun(ctx context.Context, s bundle.Store, runID string) (manifest.RunRecord, error) {
	var rec manifest.RunRecord
	key := bundle.Keys{Run: runID}.RunFile()
	if strings.Contains(runID, "/") || bundle.CheckKey(key) != nil {
		return rec, unknownRun(ctx, s, runID) // no run can have that name
	}
	body, err := readObject(ctx, s, key, maxRunFile)
	if errors.Is(err, bundle.ErrNotFound) {
		return rec, unknownRun(ctx, s, runID)
	}
	if err != nil {
		return rec, err
	}
	var head struct {
		SchemaVersion int `yaml:"schema_version"`
	}
	if err := yaml.Unmarshal(body, &head); err != nil {
		return rec, fmt.Errorf("%s: %w", key, err)
	}
	if head.SchemaVersion > bundle.SchemaVersion {
		return rec, fmt.Errorf("%s: %w", key, &bundle.VersionError{Got: head.SchemaVersion, Known: bundle.SchemaVersion})
	}
	if err := yaml.Unmarshal(body, &rec); err != nil {
		return rec, fmt.Errorf("%s: %w", key, err)
	}
	if rec.RunID != runID || rec.Plan.Parts < 0 {
		return rec, fmt.Errorf("%s: run_id %q and %d plan parts, want run_id %q and no fewer than none", key, rec.RunID, rec.Plan.Parts, runID)
	}
	return rec, nil
}

// What is looked at for the sake of a better error.
const (
	maxKnownRuns = 20
	maxLooked    = 20_000 // objects
)

func unknownRun(ctx context.Context, s bundle.Store, runID string) error {
	known := map[string]bool{}
	unknown := &UnknownRunError{RunID: runID, Store: s.URL()}
	looked := 0
	for info, err := range s.List(ctx, bundle.RunsPrefix) {
		if err != nil {
			return fmt.Errorf("no run %q in %s, and its runs can't be listed: %w", runID, s.URL(), err)
		}
		id, _, found := strings.Cut(strings.TrimPrefix(info.Key, bundle.RunsPrefix), "/")
		if found && !known[id] && len(known) == maxKnownRuns {
			unknown.More = true
			break
		}
		if found {
			known[id] = true
		}
		if looked++; looked == maxLooked {
			unknown.More = true
			break
		}
	}
	unknown.Known = slices.Sorted(maps.Keys(known))
	return unknown
}

// readObject reads an object of at most limit bytes.
func readObject(ctx context.Context, s bundle.Store, key string, limit int64) ([]byte, error) {
	r, _, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", key, err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%s: more than %d bytes", key, limit)
	}
	return body, nil
}
