// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemill/tidemill/bundle"
	"gopkg.in/yaml.v3"
)

func TestEncodeYAML(t *testing.T) {
	cost, score := 1e-7, 1.0
	got, err := bundle.EncodeYAML(map[string]any{
		"metrics": bundle.Metrics{SchemaVersion: 1, LatencyTotalS: 2, CostUSD: &cost},
		"grade":   bundle.Grade{Score: &score, PassThreshold: 1, Rewards: map[string]float64{"b": 1e21, "a": -0.5}},
		"text":    []string{"1e3", "yes", "12:30:00", "two\nlines", ""},
		"inf":     math.Inf(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"  latency_total_s: 2.0\n", "  cost_usd: 0.0000001\n", "  score: 1\n", "  pass_threshold: 1\n",
		"    a: -0.5\n    b: 1000000000000000000000.0\n", "inf: .inf\n",
		"  - \"1e3\"\n  - \"yes\"\n  - \"12:30:00\"\n  - |-\n    two\n    lines\n  - \"\"\n",
	} {
		if !strings.Contains(string(got), line) {
			t.Errorf("no %q in:\n%s", line, got)
		}
	}
	var back struct{ Grade bundle.Grade }
	if err := yaml.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bundle.Grade{Score: &score, PassThreshold: 1, Rewards: map[string]float64{"b": 1e21, "a": -0.5}}, back.Grade); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// TestNoScoreIsNull: what has no score must not look like a 0.
func TestNoScoreIsNull(t *testing.T) {
	got, err := bundle.EncodeYAML(bundle.Grade{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "scored: false\nbinary_pass: false\nscore: null\npass_threshold: 0\n"; string(got) != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}
