// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/manifest"
)

// A decision tells its cause in one line, however much there is of it.
func TestCauseOfADecision(t *testing.T) {
	for detail, want := range map[string]string{
		"":                             "lost",
		" pull: 503. \nand a trace":    "lost: pull: 503",
		strings.Repeat("ä", 200):       "lost: " + strings.Repeat("ä", maxCause/2) + "…",
		"a" + strings.Repeat("ä", 200): "lost: a" + strings.Repeat("ä", maxCause/2-1) + "…",
	} {
		if got := because("lost", detail); got != want {
			t.Errorf("%q: %q, want %q", detail, got, want)
		}
	}
}

func TestBackoffStaysInItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := manifest.Retry{
			MinBackoff: manifest.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "min")),
			MaxBackoff: manifest.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "max")),
		}
		n := rapid.IntRange(0, 1000).Draw(t, "attempt")
		limit := r.MaxBackoff.D()
		if n < 20 {
			limit = min(limit, r.MinBackoff.D()<<max(n-1, 0))
		}
		if got := Backoff(r, n); got <= 0 || got > limit {
			t.Fatalf("attempt %d: %s, want more than 0 and at most %s", n, got, limit)
		}
	})
}

// Full jitter: those who failed together don't come back together.
func TestBackoffIsSpread(t *testing.T) {
	r := manifest.Retry{MinBackoff: manifest.Duration(time.Second), MaxBackoff: manifest.Duration(time.Minute)}
	seen := map[time.Duration]bool{}
	var low, high int
	for range 1000 {
		d := Backoff(r, 4) // up to 8 s
		seen[d] = true
		if d < 2*time.Second {
			low++
		}
		if d > 6*time.Second {
			high++
		}
	}
	if len(seen) < 900 || low < 100 || high < 100 {
		t.Errorf("%d different waits, %d short and %d long ones", len(seen), low, high)
	}
}

func TestPutBackPause(t *testing.T) {
	last := time.Duration(0)
	for release := range 100 {
		d := putBackPause(release)
		if d < last || d < 2*time.Second || d > 64*time.Second {
			t.Errorf("release %d: %s after %s", release, d, last)
		}
		last = d
	}
}
