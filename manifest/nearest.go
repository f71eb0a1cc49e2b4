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

// Nearest returns the known word that somebody may have meant by this one, or "" when
// none is close.
func Nearest(word string, known []string) string { return nearest(word, known) }

// nearest returns the known word that takes the fewest edits, two at most, or else one
// that the word begins, or that begins it. Anything farther away is another word.
func nearest(word string, known []string) string {
	word = strings.ToLower(word)
	letters := utf8.RuneCountInString(word)
	if len(word) > 64 {
		return ""
	}
	best, bestEdits := "", 3
	if letters <= 3 {
		bestEdits = 2 // two edits make any short word of any other
	}
	for _, k := range known {
		n := utf8.RuneCountInString(k)
		if max(n-letters, letters-n) >= bestEdits {
			continue
		}
		if e := edits(word, strings.ToLower(k)); e < bestEdits && e < n {
			best, bestEdits = k, e
		}
	}
	if best != "" || letters < 3 {
		return best
	}
	for _, k := range known {
		low := strings.ToLower(k)
		begins := strings.HasPrefix(low, word) || len(k) >= 3 && strings.HasPrefix(word, low)
		if begins && (best == "" || len(k) < len(best)) {
			best = k
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
