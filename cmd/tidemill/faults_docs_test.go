// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/testenv"
)

// tableRE finds the tables of the page; the names are those that faults begin with.
var tableRE = regexp.MustCompile(`(?s)(<!-- faults: ([a-z ]+) -->\n).*?(<!-- end -->)`)

// TestFaultsPage compares docs/faults.md with the rows of the data sets, which the runs
// are compared with: so the page can't say anything else than what happens. With -update
// it writes the tables.
func TestFaultsPage(t *testing.T) {
	path := filepath.Join(testenv.Root(t), "docs", "faults.md")
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := faults(t)
	shown := map[string]int{}
	want := tableRE.ReplaceAllFunc(have, func(table []byte) []byte {
		m := tableRE.FindSubmatch(table)
		kinds := strings.Fields(string(m[2]))
		for _, f := range all {
			if slices.Contains(kinds, f.kind()) {
				shown[f.ID]++
			}
		}
		return slices.Concat(m[1], []byte(faultTable(all, kinds)), m[3])
	})
	for _, f := range all {
		if shown[f.ID] != 1 {
			t.Errorf("%s stands in %d tables of %s; want one", f.ID, shown[f.ID], path)
		}
	}
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what examples/faults says; go test ./cmd/tidemill -run TestFaultsPage -update writes its tables", path)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

func faultTable(all []fault, kinds []string) string {
	var b strings.Builder
	b.WriteString("| task | fault | status | termination_reason | failure_class | flags | score | attempts | look into |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		if !slices.Contains(kinds, f.kind()) {
			continue
		}
		score := "none"
		if f.Expect.Score != nil {
			score = strconv.FormatFloat(*f.Expect.Score, 'g', -1, 64)
		}
		flags := strings.Join(f.Expect.Flags, ", ")
		if flags == "" {
			flags = "none"
		}
		var look []string
		for _, p := range f.Look {
			what := cell(p.Text)
			if p.Hex != "" {
				what = "the bytes as they were written"
			}
			look = append(look, fmt.Sprintf("`%s`: %s", p.File, what))
		}
		fmt.Fprintf(&b, "| `%s` | **%s**: %s | %s | %s | %s | %s | %s | %d | %s |\n", f.ID, f.Fault, prose(f.How),
			f.Expect.Status, f.Expect.TerminationReason, f.Expect.FailureClass, flags, score, f.Expect.Attempts, strings.Join(look, "<br>"))
	}
	return b.String()
}

// cell is text as it stands in a file, in a cell of a table.
func cell(s string) string { return "`` " + prose(spaced(s)) + " ``" }

// prose is prose in a cell of a table.
func prose(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
