// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Comparison shows the runs of a matrix beside each other. The zero value has none.
type Comparison struct {
	runs []compared
}

// compared is what is kept of a run.
type compared struct {
	id, group        string
	matrix           map[string]string
	n, scored        int64
	rate, pass1, p50 string
}

// Add takes the next run. One that belongs to no matrix is passed over.
func (c *Comparison) Add(agg *Aggregate) {
	if agg.Group == "" {
		return
	}
	row := compared{
		id: agg.RunID, group: agg.Group, matrix: agg.Matrix, n: agg.TotalTrials, scored: agg.Scored,
		rate: rateAndInterval(agg), pass1: decimals(agg.PassAt1Macro), p50: "-",
	}
	if agg.Committed > 0 {
		row.p50 = seconds(agg.LatencyP50S)
	}
	c.runs = append(c.runs, row)
}

// Write writes a table for each group of which there is more than one run, in the order
// in which the first ones came.
func (c *Comparison) Write(w io.Writer) error {
	var b strings.Builder
	var done []string
	for _, first := range c.runs {
		if slices.Contains(done, first.group) {
			continue
		}
		done = append(done, first.group)
		var runs []compared
		for _, r := range c.runs {
			if r.group == first.group {
				runs = append(runs, r)
			}
		}
		if len(runs) > 1 {
			writeCompared(&b, runs)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCompared(b *strings.Builder, runs []compared) {
	values := map[string]bool{}
	for _, r := range runs {
		for name := range r.matrix {
			values[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(values))
	heading := []string{"run"}
	for _, name := range names {
		heading = append(heading, shorten(printable(name), maxTaskWidth))
	}
	lines := [][]string{append(heading, "n", "scored", "success", "pass@1", "p50")}
	for _, r := range runs {
		line := []string{printable(r.id)}
		for _, name := range names {
			line = append(line, shorten(printable(r.matrix[name]), maxTaskWidth))
		}
		lines = append(lines, append(line, itoa(r.n), itoa(r.scored), r.rate, r.pass1, r.p50))
	}
	fmt.Fprintf(b, "\ngroup %s\n\n", printable(runs[0].group))
	for _, line := range columns(lines, func(i int) bool { return i > len(names) }) {
		b.WriteString(line + "\n")
	}
}

// rateAndInterval is the success rate with what it may be by chance.
func rateAndInterval(agg *Aggregate) string {
	rate := Percent(agg.SuccessRate)
	if ci := agg.SuccessRateCI95; ci != nil {
		rate += fmt.Sprintf(" [%s, %s]", Percent(&ci[0]), Percent(&ci[1]))
	}
	return rate
}
