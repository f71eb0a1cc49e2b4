// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// A rate near none is one start and a long wait, and never no limit.
func TestStep(t *testing.T) {
	for rate, want := range map[float64]time.Duration{
		0: 0, 4: 250 * time.Millisecond, 0.5: 2 * time.Second, 1e-300: 1e9 * time.Second, math.SmallestNonzeroFloat64: 1e9 * time.Second,
	} {
		if got := (queue.Limits{MaxStartsPerSecond: rate}).Step(); got != want {
			t.Errorf("at %v a second: %v, want %v", rate, got, want)
		}
	}
}

func TestRunValidate(t *testing.T) {
	base := queue.Run{ID: "r1", Class: "docker"}.WithDefaults()
	if err := base.Validate(); err != nil {
		t.Fatalf("a run with defaults: %v", err)
	}
	for _, tt := range []struct {
		name   string
		change func(*queue.Run)
		err    string
	}{
		{"no id", func(r *queue.Run) { r.ID = "" }, `run id ""`},
		{"dot in id", func(r *queue.Run) { r.ID = "a.b" }, `run id "a.b"`},
		{"long id", func(r *queue.Run) { r.ID = strings.Repeat("a", 64) }, "run id"},
		{"wildcard pool", func(r *queue.Run) { r.Pool = "*" }, `pool "*"`},
		{"no class", func(r *queue.Run) { r.Class = "" }, "class"},
		{"unsorted class", func(r *queue.Run) { r.Class = "gpu-docker" }, `"docker-gpu"`},
		{"priority", func(r *queue.Run) { r.Priority = "urgent" }, "want low, normal or high"},
		{"negative cap", func(r *queue.Run) { r.Limits.MaxInFlight = -1 }, "limits are"},
		{"negative rate", func(r *queue.Run) { r.Limits.MaxStartsPerSecond = -1 }, "limits are"},
		{"rate that is no number", func(r *queue.Run) { r.Limits.MaxStartsPerSecond = math.NaN() }, "limits are"},
		{"rate without end", func(r *queue.Run) { r.Limits.MaxStartsPerSecond = math.Inf(1) }, "limits are"},
	} {
		run := base
		tt.change(&run)
		if err := run.Validate(); err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: error = %v, want one that says %q", tt.name, err, tt.err)
		}
	}
}

func TestPriorityWeight(t *testing.T) {
	for p, want := range map[queue.Priority]int{queue.Low: 1, queue.Normal: 4, "": 4, queue.High: 16} {
		if got := p.Weight(); got != want {
			t.Errorf("weight of %q = %d, want %d", p, got, want)
		}
	}
}

func TestRequestValidate(t *testing.T) {
	base := queue.Request{Worker: "w", Offers: []string{"docker"}, Nonce: "0123456789abcdef"}.WithDefaults()
	if err := base.Validate(); err != nil {
		t.Fatalf("a request with defaults: %v", err)
	}
	for name, change := range map[string]func(*queue.Request){
		"no worker":     func(r *queue.Request) { r.Worker = "" },
		"wildcard pool": func(r *queue.Request) { r.Pool = ">" },
		"no offers":     func(r *queue.Request) { r.Offers = nil },
		"short nonce":   func(r *queue.Request) { r.Nonce = "0123" },
		"nonce not hex": func(r *queue.Request) { r.Nonce = "0123456789abcdeg" },
	} {
		r := base
		change(&r)
		if r.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
