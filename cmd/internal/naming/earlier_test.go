// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/producer"
)

func TestEarlier(t *testing.T) {
	store := storeWith(t,
		run{id: "older", digest: "d2", minute: 1},
		run{id: "newer", digest: "d2", minute: 2},
		run{id: "finished", digest: "d2", minute: 3, done: true},
		run{id: "cancelled", digest: "d2", minute: 4},
		run{id: "continued", digest: "d1", minute: 5},
	)
	keys := bundle.Keys{Run: "cancelled"}
	cancel := func([]bundle.Control) (bundle.Control, error) {
		return bundle.Control{Kind: bundle.ControlCancel, By: "me", At: at}, nil
	}
	if _, err := bundle.AppendControl(t.Context(), store, keys, cancel); err != nil {
		t.Fatal(err)
	}
	// What can't be understood is nobody's run.
	if _, err := store.Create(t.Context(), bundle.Keys{Run: "odd"}.RunFile(), []byte("}{")); err != nil {
		t.Fatal(err)
	}
	n := Namer{Store: store, Continue: true, Now: at}
	if _, err := n.File(t.Context(), []*producer.Draft{draft("n", "d1")}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{"n": {"newer 0", "older 0"}, "another": nil} {
		open, err := n.Earlier(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range open {
			got = append(got, fmt.Sprintf("%s %d", e.Record.RunID, e.Done))
		}
		if !slices.Equal(got, want) {
			t.Errorf("of the name %s: %v, want %v", name, got, want)
		}
	}
}

// What lies far back is not looked at.
func TestEarlierIsBounded(t *testing.T) {
	runs := []run{{id: "forgotten", digest: "d", minute: 0}}
	for i := range maxEarlier {
		runs = append(runs, run{id: fmt.Sprintf("r-%d", i), digest: "d", minute: i + 1, done: true})
	}
	n := Namer{Store: storeWith(t, runs...)}
	if open, err := n.Earlier(t.Context(), "n"); err != nil || len(open) > 0 {
		t.Errorf("%v, %v; want none", open, err)
	}
}
