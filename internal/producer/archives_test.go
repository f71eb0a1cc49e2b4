// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle/bundletest"
)

// The command has the right pack at hand: one that was damaged in the store is put there
// anew when the run goes on, and one that is right is not written again.
func TestDamagedPackIsReplaced(t *testing.T) {
	for what, damage := range map[string]func(body string) string{
		"cut":      func(body string) string { return body[:len(body)/2] },
		"longer":   func(body string) string { return body + "x" },
		"empty":    func(string) string { return "" },
		"same":     func(body string) string { return body },
		"one byte": func(body string) string { return body[:len(body)-1] + string(body[len(body)-1]^1) },
	} {
		t.Run(what, func(t *testing.T) {
			l := newLab(t, "a", "b")
			l.submit(l.draft(""), "one")
			want := l.objects("packs/")
			if len(want) != 1 {
				t.Fatalf("%d packs, want 1", len(want))
			}
			for key, body := range want {
				if err := l.store.Put(t.Context(), key, strings.NewReader(damage(body)), -1); err != nil {
					t.Fatal(err)
				}
			}
			puts := l.store.Calls(bundletest.OpPut)
			l.submit(l.draft(""), "one")
			if diff := cmp.Diff(want, l.objects("packs/")); diff != "" {
				t.Errorf("the pack in the store (-want +got):\n%s", diff)
			}
			if again := l.store.Calls(bundletest.OpPut) - puts; (again > 0) == (what == "same") {
				t.Errorf("%d puts", again)
			}
		})
	}
}
