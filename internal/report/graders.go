// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Graders says in a sentence whose verdicts an aggregate adds up, where not one grader
// judged all of them; else it is empty.
func Graders(agg *Aggregate) string {
	byRun := agg.Committed - agg.Epochs.Regraded
	var parts []string
	for _, sum := range slices.Sorted(maps.Keys(agg.Epochs.RegradedBy)) {
		parts = append(parts, fmt.Sprintf("%d of a regrade by pack %.12s", agg.Epochs.RegradedBy[sum], printable(sum)))
	}
	if byRun > 0 {
		parts = append(parts, fmt.Sprintf("%d of the run's own grading", byRun))
	}
	if len(parts) < 2 {
		return ""
	}
	return fmt.Sprintf("verdicts come from %d gradings: %s", len(parts), strings.Join(parts, ", "))
}

// writeGraders writes that verdicts aren't all of one grader.
func writeGraders(b *strings.Builder, agg *Aggregate) {
	if text := Graders(agg); text != "" {
		fmt.Fprintf(b, "note: %s\n", text)
	}
}
