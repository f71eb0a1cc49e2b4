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

// Printer shows aggregates.
type Printer struct {
	W        io.Writer
	StoreURL string
	JSON     bool // aggregate.json itself
	MaxTasks int
	Many     bool // there are several runs: each says its name
}

// Print shows the aggregate of the i-th run: as JSON, or as a table with where
// aggregate.json is.
func (p Printer) Print(i int, agg *report.Aggregate) error {
	if p.JSON {
		return app.PrintJSON(p.W, agg)
	}
	if p.Many {
		if i > 0 {
			fmt.Fprintln(p.W)
		}
		if _, err := fmt.Fprintf(p.W, "run %s\n\n", agg.RunID); err != nil {
			return err
		}
	}
	if err := report.WriteTable(p.W, agg, report.TableOptions{MaxTasks: p.MaxTasks, Color: app.Color(p.W)}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.W, "\n%s\n", stores.Join(p.StoreURL, bundle.Keys{Run: agg.RunID}.Report(report.AggregateFile)))
	return err
}
