// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/internal/worker"
)

func TestLines(t *testing.T) {
	var out bytes.Buffer
	tr := NewTracker(1)
	r := NewReporter(&out, tr)
	r.Listening("nats://127.0.0.1:4222")
	r.Submitted(Run{RunID: "r", Tasks: 1, Trials: 2})
	r.Observe(event(worker.Started, "a"))
	r.Observe(event(worker.Phase, "a"))
	done := committed("a", "passed")
	score := 1.0
	done.Grade.Score, done.Latency = &score, 182_345_678*time.Nanosecond
	r.Observe(done)
	again := event(worker.Retrying, "b")
	again.Why = "runtime_lost: attempt 2 of 3 follows in 1s"
	r.Observe(again)
	r.Stopping(time.Minute)
	r.Close()

	var got []map[string]any
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if _, err := time.Parse(time.RFC3339Nano, m["time"].(string)); err != nil {
			t.Error(err)
		}
		delete(m, "time")
		got = append(got, m)
	}
	want := []map[string]any{
		{"event": "listening", "url": "nats://127.0.0.1:4222"},
		{"event": "submitted", "run_id": "r", "continued": false, "tasks": 1.0, "trials": 2.0, "done": 0.0},
		{
			"event": "committed", "run_id": "r", "task_id": "t", "trial_index": 0.0, "trial_id": "a", "attempt": 1.0,
			"score": 1.0, "passed": true, "latency_s": 0.182,
		},
		{
			"event": "retrying", "run_id": "r", "task_id": "t", "trial_index": 0.0, "trial_id": "b", "attempt": 1.0,
			"passed": false, "detail": "runtime_lost: attempt 2 of 3 follows in 1s",
		},
		{"event": "stopping", "drain_timeout_s": 60.0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if c := tr.Snapshot().Runs["r"]; c.Done != 1 || c.Retries != 1 {
		t.Errorf("the tracker was told %+v", c)
	}
}

// Lines of many slots don't get into each other.
func TestLinesFromManySlots(t *testing.T) {
	var out bytes.Buffer
	l := &Lines{W: &out}
	var slots sync.WaitGroup
	for range 16 {
		slots.Go(func() {
			for range 50 {
				l.Observe(committed("a", "passed"))
			}
		})
	}
	slots.Wait()
	n := 0
	for line := range strings.Lines(out.String()) {
		n++
		if !json.Valid([]byte(line)) {
			t.Fatalf("%q is no JSON", line)
		}
	}
	if n != 16*50 {
		t.Errorf("%d lines; want %d", n, 16*50)
	}
}
