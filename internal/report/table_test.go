// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

func table(t *testing.T, agg *Aggregate, o TableOptions) string {
	t.Helper()
	var b strings.Builder
	if err := WriteTable(&b, agg, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableGolden(t *testing.T) {
	agg, _ := accumulate(t, header(4), sample())
	golden(t, "table.txt", table(t, agg, TableOptions{}))
	golden(t, "table_color.txt", table(t, agg, TableOptions{Color: true}))
	golden(t, "table_worst.txt", table(t, agg, TableOptions{MaxTasks: 2}))
	golden(t, "table_overall.txt", table(t, agg, TableOptions{MaxTasks: -1}))
	agg.Ended = &Ended{Kind: "cancel", Rev: 3, By: "ops", Reason: "wrong model"}
	golden(t, "table_ended.txt", table(t, agg, TableOptions{}))
}

func TestTableOfNothing(t *testing.T) {
	agg, _ := accumulate(t, header(1), []Trial{{Row: rowOf("a", 0)}})
	golden(t, "table_nothing.txt", table(t, agg, TableOptions{}))
}

func TestTableIsBounded(t *testing.T) {
	var trials []Trial
	for i := range 2000 {
		row := rowOf(fmt.Sprintf("t%04d", i), 0)
		trials = append(trials, Trial{Row: row, Commit: graded(row, float64(i%2), i)})
	}
	agg, _ := accumulate(t, header(1), trials)
	got := table(t, agg, TableOptions{})
	if n := strings.Count(got, "\n"); n > 27 {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(got, "worst first of the first 1000; all 2000 tasks are in per_task_metrics.json") {
		t.Errorf("what was left out is not told:\n%s", got)
	}
}

// Ids are anybody's text: they don't break lines, columns or the terminal.
func TestTableWithAnyText(t *testing.T) {
	ids := []string{"plain", "日本語タスク", "e\u0301te\u0301", "esc\x1b[31mred\n", strings.Repeat("long/", 30), "bad\xff"}
	var trials []Trial
	for _, id := range ids {
		row := rowOf(id, 0)
		trials = append(trials, Trial{Row: row, Commit: graded(row, 1, 10)})
	}
	agg, _ := accumulate(t, header(1), trials)
	got := table(t, agg, TableOptions{})
	if strings.Contains(got, "\x1b") {
		t.Errorf("an escape reached the terminal:\n%q", got)
	}
	lines := strings.Split(got, "\n")
	want := width(lines[3])
	for _, line := range lines[3 : len(ids)+3] {
		if width(line) != want {
			t.Errorf("width of %q is %d, want %d", line, width(line), want)
		}
	}
}

func TestPercentNeverRoundsToAllOrNothing(t *testing.T) {
	for rate, want := range map[float64]string{0: "0.0%", 0.00001: "0.1%", 0.5: "50.0%", 0.99999: "99.9%", 1: "100.0%"} {
		if got := Percent(&rate); got != want {
			t.Errorf("Percent(%v) = %s, want %s", rate, got, want)
		}
	}
}

func TestWithoutIsBounded(t *testing.T) {
	reasons := map[string]int64{}
	for i := range 50 {
		reasons[fmt.Sprintf("r%02d", i)] = int64(i + 1)
	}
	if got, want := without(reasons, 2), "50 r49, 49 r48, 48 r47, 47 r46, 46 r45, 45 other reasons, 2 missing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := without(map[string]int64{bundle.ReasonGraderError: 1}, 0); got != "1 grader_error" {
		t.Errorf("got %q", got)
	}
}
