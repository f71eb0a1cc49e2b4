// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// In memory or on disk, the set finds the duplicates that a map finds.
func TestIDSet(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.StringMatching(`[a-f]{1,2}`), 0, 60).Draw(t, "ids")
		s := newIDSet(rapid.IntRange(1, 70).Draw(t, "most"))
		var got, want []Duplicate
		first := map[string]uint64{}
		for i, id := range ids {
			place := uint64(i + 1)
			if at, ok := first[id]; ok {
				want = append(want, Duplicate{at, place})
			} else {
				first[id] = place
			}
			at, twice, err := s.Add(id, place)
			if err != nil {
				t.Fatal(err)
			}
			if twice {
				got = append(got, Duplicate{at, place})
			}
		}
		late, err := s.Duplicates(len(ids))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, append(got, late...)); diff != "" {
			t.Fatalf("duplicates (-want +got):\n%s", diff)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestIDSetForgetsMemory(t *testing.T) {
	s := newIDSet(2)
	defer s.Close() //nolint:errcheck // test
	for i, id := range []string{"a", "b", "c"} {
		if _, _, err := s.Add(id, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if s.places != nil || len(s.buckets) != idBuckets {
		t.Errorf("%d ids in memory, %d buckets", len(s.places), len(s.buckets))
	}
}
