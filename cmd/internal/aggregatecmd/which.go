// SPDX-License-Identifier: Apache-2.0

package aggregatecmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/manifest"
)

// maxNamed is how many runs an error names.
const maxNamed = 5

// which are the runs that words name, or the store's only run where there are no words.
func which(ctx context.Context, store bundle.Store, words []string) ([]manifest.RunRecord, error) {
	if len(words) == 0 {
		return only(ctx, store)
	}
	var recs []manifest.RunRecord
	for _, word := range words {
		named, err := trials.Resolve(ctx, store, word)
		if err != nil {
			return nil, err
		}
		recs = append(recs, named...)
	}
	return recs, nil
}

func only(ctx context.Context, store bundle.Store) ([]manifest.RunRecord, error) {
	recs, err := trials.Runs(ctx, store)
	switch {
	case err != nil || len(recs) == 1:
		return recs, err
	case len(recs) == 0:
		_, err := trials.Newest(ctx, store) // which says so
		return nil, err
	}
	var names []string
	for _, rec := range recs[:min(len(recs), maxNamed)] {
		names = append(names, rec.RunID)
	}
	if more := len(recs) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return nil, app.Usage(app.Hint(fmt.Errorf("no run given, and %s has %s", store.URL(), strings.Join(names, ", ")),
		"name those that you mean; tidemill status lists the runs"))
}
