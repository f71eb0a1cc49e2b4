// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

// TestTrialID has the preimages written out, so that they, and not our encoder, say
// what an id is.
func TestTrialID(t *testing.T) {
	const uuid = "6f1c1f0e-3a1b-4c58-9a53-2f8f3f1d9c11"
	for _, c := range []struct {
		run, task string
		index     int
		preimage  string
	}{
		{"quick", "HumanEval/0", 0, `["` + uuid + `","quick","HumanEval/0",0]`},
		{"quick", "HumanEval/0", 12, `["` + uuid + `","quick","HumanEval/0",12]`},
		{"r-2", `a"b\c <&> é`, 1, `["` + uuid + `","r-2","a\"b\\c <&> é",1]`},
		{"r", "tab\there", 3, `["` + uuid + `","r","tab\there",3]`},
	} {
		sum := sha256.Sum256([]byte(c.preimage))
		want := hex.EncodeToString(sum[:])[:32]
		if got := bundle.TrialID(uuid, c.run, c.task, c.index); got != want {
			t.Errorf("trial %d of %q: %s, want %s", c.index, c.task, got, want)
		}
	}
	// One vector in full, for those who write another implementation.
	if got, want := bundle.TrialID(uuid, "quick", "HumanEval/0", 0), "65bbb3df7aad40ac8790a0b00eada7bb"; got != want {
		t.Errorf("the vector is %s, want %s", got, want)
	}
}

func TestRandomNames(t *testing.T) {
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	nonce := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := map[string]bool{}
	for range 100 {
		u, n := bundle.NewUUID(), bundle.NewNonce()
		if !uuid.MatchString(u) || !nonce.MatchString(n) || seen[u] || seen[n] {
			t.Fatalf("uuid %q, nonce %q", u, n)
		}
		seen[u], seen[n] = true, true
	}
}
