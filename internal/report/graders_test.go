// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

// A rate over verdicts of several graders says so.
func TestGraders(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for _, c := range []struct {
		committed int64
		by        map[string]int64
		want      string
	}{
		{5, map[string]int64{}, ""},
		{5, map[string]int64{a: 5}, ""},
		{5, map[string]int64{a: 3}, "verdicts come from 2 gradings: 3 of a regrade by pack aaaaaaaaaaaa, 2 of the run's own grading"},
		{5, map[string]int64{b: 2, a: 3}, "verdicts come from 2 gradings: 3 of a regrade by pack aaaaaaaaaaaa, 2 of a regrade by pack bbbbbbbbbbbb"},
		{6, map[string]int64{b: 2, a: 3}, "verdicts come from 3 gradings: 3 of a regrade by pack aaaaaaaaaaaa, 2 of a regrade by pack bbbbbbbbbbbb, 1 of the run's own grading"},
	} {
		agg := &Aggregate{Committed: c.committed, Epochs: Epochs{RegradedBy: c.by}}
		for _, n := range c.by {
			agg.Epochs.Regraded += n
		}
		if got := Graders(agg); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
		var table strings.Builder
		if err := WriteTable(&table, agg, TableOptions{}); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(table.String(), "note: verdicts come from"); said != (c.want != "") {
			t.Errorf("the table of %+v says %v", c, said)
		}
	}
}
