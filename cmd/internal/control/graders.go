// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/producer"
)

// warnOfGraders says that a retry mixes verdicts: a regrade with a corrected pack is for
// the trials that it named, and what is tried again is not among them any more.
func warnOfGraders(w io.Writer, a *producer.Answer) {
	for _, sum := range slices.Sorted(maps.Keys(a.OtherGraders)) {
		n := a.OtherGraders[sum]
		show := "show"
		if n == 1 {
			show = "shows"
		}
		fmt.Fprintf(w, "tidemill: warning: run %s: %s %s the verdict of pack %.12s, which graded again; those tried again are judged by the run's own\n",
			a.Run, app.Count(n, "trial"), show, sum)
	}
	if len(a.OtherGraders) > 0 {
		fmt.Fprintf(w, "tidemill: hint: tidemill regrade %s --pack DIR judges these by the corrected pack too, once they are done\n", a.Run)
	}
}
