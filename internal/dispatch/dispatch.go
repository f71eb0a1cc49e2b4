// SPDX-License-Identifier: Apache-2.0

// Package dispatch is what producers and workers agree on: what a job's body says, how
// a run of the store looks to the queue, and how run.yaml is read.
package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// Body returns the body of a job: where its trial stands in the plan.
func Body(ref bundle.PlanRef) []byte {
	b, err := json.Marshal(ref)
	if err != nil {
		panic(fmt.Sprintf("two numbers always encode: %v", err))
	}
	return b
}

// ParseBody reads what Body wrote.
func ParseBody(body []byte) (bundle.PlanRef, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	var ref bundle.PlanRef
	if err := dec.Decode(&ref); err != nil {
		return bundle.PlanRef{}, fmt.Errorf("job body %q: %w", body, err)
	}
	if ref.Part < 0 || ref.Row < 0 {
		return bundle.PlanRef{}, fmt.Errorf("job body %q: negative numbers", body)
	}
	return ref, nil
}

// Needs are what a run asks of a worker.
func Needs(run manifest.Run) []string {
	needs := []string{run.Runtime.Type}
	if run.Runtime.Resources.GPUs > 0 {
		needs = append(needs, "gpu")
	}
	return needs
}

// QueueRun is the run as the queue sees it.
func QueueRun(rec manifest.RunRecord) (queue.Run, error) {
	class, err := queue.NewClass(Needs(rec.Run)...)
	if err != nil {
		return queue.Run{}, fmt.Errorf("run %s: %w", rec.RunID, err)
	}
	r := queue.Run{
		ID: rec.RunID, Pool: rec.Run.Pool, Class: class, Priority: queue.Priority(rec.Run.Priority),
		Limits: queue.Limits{
			MaxInFlight:        rec.Run.Limits.MaxInFlight,
			MaxStartsPerSecond: rec.Run.Limits.MaxStartsPerSecond,
		},
	}.WithDefaults()
	return r, r.Validate()
}

// EncodeRun writes run.yaml.
func EncodeRun(rec manifest.RunRecord) ([]byte, error) { return bundle.EncodeYAML(rec) }

// UnknownRunError says that a store has no such run.
type UnknownRunError struct {
	Run, Store string
	Known      []string // some of those that are there, sorted
}

func (e *UnknownRunError) Error() string {
	msg := fmt.Sprintf("no run %s in %s", e.Run, e.Store)
	if len(e.Known) == 0 {
		return msg + "; it has no runs yet"
	}
	return msg + "; it has " + strings.Join(e.Known, ", ")
}

const maxRunFile = 16 << 20

// LoadRun reads run.yaml of a store. A run that isn't there is an [UnknownRunError].
func LoadRun(ctx context.Context, store bundle.Store, runID string) (manifest.RunRecord, error) {
	var rec manifest.RunRecord
	r, _, err := store.Get(ctx, bundle.Keys{Run: runID}.RunFile())
	if errors.Is(err, bundle.ErrNotFound) || errors.Is(err, bundle.ErrInvalidKey) {
		return rec, unknownRun(ctx, store, runID)
	}
	if err != nil {
		return rec, fmt.Errorf("run %s: %w", runID, err)
	}
	defer r.Close()
	body, err := io.ReadAll(io.LimitReader(r, maxRunFile))
	if err != nil {
		return rec, fmt.Errorf("run %s: %w", runID, err)
	}
	if err := yaml.Unmarshal(body, &rec); err != nil {
		return rec, fmt.Errorf("run %s: run.yaml: %w", runID, err)
	}
	if rec.SchemaVersion > bundle.SchemaVersion {
		return rec, fmt.Errorf("run %s: run.yaml has schema_version %d, this program reads up to %d; use a newer one",
			runID, rec.SchemaVersion, bundle.SchemaVersion)
	}
	if rec.RunID != runID {
		return rec, fmt.Errorf("run %s: run.yaml is of run %q", runID, rec.RunID)
	}
	return rec, nil
}

func unknownRun(ctx context.Context, store bundle.Store, runID string) error {
	e := &UnknownRunError{Run: runID, Store: store.URL()}
	for name, err := range bundle.ListRuns(ctx, store) {
		if err != nil {
			return err
		}
		e.Known = append(e.Known, name)
	}
	slices.Sort(e.Known)
	if n := len(e.Known); n > 10 {
		e.Known = e.Known[n-10:]
	}
	return e
}
