// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// suggest returns what to say about a word that isn't in the list: the nearest one,
// or all that there are.
func suggest(word string, known []string) string {
	known = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k == "" })
	if n := nearest(word, known); n != "" {
		return "did you mean " + n + "?"
	}
	if len(known) == 0 {
		return ""
	}
	slices.Sort(known)
	return "known here: " + strings.Join(slices.Compact(known), ", ")
}

// nearest returns the known word that takes the fewest edits, or "" when none is
// close: more than a third of the letters (at least two) changed is another word.
func nearest(word string, known []string) string {
	word = strings.ToLower(word)
	if len(word) > 64 {
		return ""
	}
	best, bestEdits := "", max(2, utf8.RuneCountInString(word)/3)+1
	for _, k := range known {
		if e := edits(word, strings.ToLower(k)); e < bestEdits && e < utf8.RuneCountInString(k) {
			best, bestEdits = k, e
		}
	}
	return best
}

// edits counts the insertions, deletions, replacements and swaps of neighbours that
// turn a into b.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row := make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}
