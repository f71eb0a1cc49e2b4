// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatchGlob(t *testing.T) {
	for _, c := range []struct {
		glob, s string
		want    bool
	}{
		{"*", "", true},
		{"", "", true},
		{"", "a", false},
		{"HumanEval/*", "HumanEval/0", true},
		{"*", "a/b/c", true},
		{"a*c", "a/b/c", true},
		{"a*b*c", "aXbYbZc", true},
		{"a*b*c", "aXbYbZ", false},
		{"?", "é", true},
		{"??", "é", false},
		{"[a-c]x", "bx", true},
		{"[!a-c]x", "bx", false},
		{"[^a-c]x", "dx", true},
		{"[]]", "]", true},
		{"[a-]", "-", true},
		{"[é-ü]", "ö", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{"[a", "a", false},
		{`a\`, `a\`, false},
		{"]", "]", true},
		{"*a", strings.Repeat("b", 1000), false},
	} {
		if got := MatchGlob(c.glob, c.s); got != c.want {
			t.Errorf("MatchGlob(%q, %q) = %t", c.glob, c.s, got)
		}
	}
}

// A glob matches what the regular expression of the same meaning matches.
func TestMatchGlobLikeRegexp(t *testing.T) {
	meaning := map[string]string{"*": "(?s:.*)", "?": "(?s:.)", "a": "a", "b": "b", "/": "/", "[ab]": "[ab]", "[!a]": "[^a]", `\*`: `\*`, "é": "é"}
	elements := rapid.SampledFrom([]string{"*", "?", "a", "b", "/", "[ab]", "[!a]", `\*`, "é"})
	rapid.Check(t, func(t *rapid.T) {
		var glob, re string
		for _, e := range rapid.SliceOfN(elements, 0, 8).Draw(t, "glob") {
			glob, re = glob+e, re+meaning[e]
		}
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "/", "*", "é", "\n"}), 0, 8).Draw(t, "s"), "")
		if got, want := MatchGlob(glob, s), regexp.MustCompile("^(?:"+re+")$").MatchString(s); got != want {
			t.Fatalf("MatchGlob(%q, %q) = %t, want %t", glob, s, got, want)
		}
	})
}

func TestSelect(t *testing.T) {
	s := Select{Tasks: []string{"a*", "b"}, Exclude: []string{"*x"}}
	for id, want := range map[string]bool{"a": true, "abc": true, "b": true, "bc": false, "ax": false} {
		if s.Match(id) != want {
			t.Errorf("Match(%q) = %t", id, !want)
		}
	}
	if !(Select{}).Match("anything") {
		t.Error("an empty selection leaves something out")
	}
}
