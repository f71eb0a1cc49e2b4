// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

// EncodeRun writes run.yaml.
func EncodeRun(rec manifest.RunRecord) ([]byte, error) { return bundle.EncodeYAML(rec) }

// maxRunFile bounds run.yaml, in bytes.
const maxRunFile = 16 << 20

// LoadRun reads run.yaml of a store. A run that isn't there is an [UnknownRunError],
// one whose file can't be read a [BadRunError]; any other error is the store's.
func LoadRun(ctx context.Context, store bundle.Store, runID string) (manifest.RunRecord, error) {
	key := bundle.Keys{Run: runID}.RunFile()
	if strings.Contains(runID, "/") || bundle.CheckKey(key) != nil {
		return manifest.RunRecord{}, unknownRun(ctx, store, runID) // no run can have that name
	}
	body, err := read(ctx, store, key)
	if errors.Is(err, bundle.ErrNotFound) {
		return manifest.RunRecord{}, unknownRun(ctx, store, runID)
	}
	if err != nil {
		return manifest.RunRecord{}, fmt.Errorf("run %s: %w", runID, err)
	}
	rec, err := parseRun(body, runID)
	if err != nil {
		return manifest.RunRecord{}, &BadRunError{Run: runID, Key: key, Err: err}
	}
	return rec, nil
}

func parseRun(body []byte, runID string) (rec manifest.RunRecord, err error) {
	if len(body) > maxRunFile {
		return rec, fmt.Errorf("more than %d bytes", maxRunFile)
	}
	// The version first: the rest of a newer file may be of other types.
	var head struct {
		SchemaVersion int `yaml:"schema_version"`
	}
	if err := yaml.Unmarshal(body, &head); err != nil {
		return rec, err
	}
	switch {
	case head.SchemaVersion > bundle.SchemaVersion:
		return rec, &bundle.VersionError{Got: head.SchemaVersion, Known: bundle.SchemaVersion}
	case head.SchemaVersion < 1:
		return rec, errors.New("want a schema_version of 1 or more")
	}
	if err := yaml.Unmarshal(body, &rec); err != nil {
		return rec, err
	}
	if rec.RunID != runID || rec.Plan.Parts < 0 {
		return rec, fmt.Errorf("run_id %q and %d plan parts, want run_id %q and no fewer than none", rec.RunID, rec.Plan.Parts, runID)
	}
	return rec, nil
}

// read gets an object, or as much of it as shows that it is too large.
func read(ctx context.Context, store bundle.Store, key string) ([]byte, error) {
	r, _, err := store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxRunFile+1))
}
