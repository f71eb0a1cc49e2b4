// SPDX-License-Identifier: Apache-2.0

package aggregatecmd

import (
	"fmt"
	"io"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/internal/report"
)

// MaxTasksHelp is how a --max-tasks flag explains itself; its default is 20.
const MaxTasksHelp = "how many tasks the table shows, the worst where not all fit; 0 means the default, and less than 0 none"

// Printer shows aggregates.
type Printer struct {
	W        io.Writer
	StoreURL string
	JSON     bool // aggregate.json itself
	MaxTasks int

	printed    int
	comparison report.Comparison
}

// Print shows the aggregate of the next run: as JSON, or as a table with where
// aggregate.json is.
func (p *Printer) Print(agg *report.Aggregate) error {
	if p.JSON {
		return app.PrintJSON(p.W, agg)
	}
	if p.printed > 0 {
		fmt.Fprintln(p.W)
	}
	p.printed++
	p.comparison.Add(agg)
	where := func(key string) string { return stores.Join(p.StoreURL, key) }
	if err := report.WriteTable(p.W, agg, report.TableOptions{MaxTasks: p.MaxTasks, Color: app.Color(p.W), Path: where}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.W, "\n%s\n", where(bundle.Keys{Run: agg.RunID}.Report(report.AggregateFile)))
	return err
}

// Close compares the runs of each matrix that were printed.
func (p *Printer) Close() error { return p.comparison.Write(p.W) }
