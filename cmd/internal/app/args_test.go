// SPDX-License-Identifier: Apache-2.0

package app

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"run", "submit", "status", "aggregate", "drain-timeout", "slots", "store"}
	for word, want := range map[string]string{
		"rum":          "run",
		"statsu":       "status",
		"slot":         "slots",
		"agg":          "aggregate", // the beginning of a word
		"drain_timeot": "drain-timeout",
		"xyzzy":        "",
		"x":            "",
		"":             "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest(%q) = %q; want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"abc", "", 3},
		{"", "abc", 3},
		{"abc", "abc", 0},
		{"abc", "abd", 1},
		{"abc", "ab", 1},
		{"kitten", "sitting", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d; want %d", c.a, c.b, got, c.want)
		}
	}
}
