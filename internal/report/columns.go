// SPDX-License-Identifier: Apache-2.0

package report

import "strings"

// columns lays cells out below each other. Every line has the same number of them; right
// says which columns stand at their right edge.
func columns(lines [][]string, right func(column int) bool) []string {
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	out := make([]string, len(lines))
	for n, line := range lines {
		var text strings.Builder
		for i, cell := range line {
			if i > 0 {
				text.WriteString("  ")
			}
			text.WriteString(pad(cell, widths[i], right(i)))
		}
		out[n] = strings.TrimRight(text.String(), " ")
	}
	return out
}
