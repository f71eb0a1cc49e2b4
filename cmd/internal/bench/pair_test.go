// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// pairTrials is how many trials each side of a pair runs.
const pairTrials = 200

// BenchmarkPairs sets the whole path beside the bare trial, in turn, so that both have the
// machine's good and bad moments. An iteration is one pair; ratio is the median of bare
// time by tidemill's time, pair by pair: 1 would be a path that costs nothing.
func BenchmarkPairs(b *testing.B) {
	for _, slots := range slotCounts {
		b.Run(fmt.Sprintf("isolation=none/slots=%d", slots), func(b *testing.B) {
			r, t := newRig(b), newBare(b, plain())
			file := r.runFile(b, pairTrials, "none")
			var ratios, ours, bares []float64
			for i := range b.N {
				b.StopTimer()
				r.submit(b, file)
				b.StartTimer()
				start := time.Now()
				r.work(b, pairTrials, slots)
				mine := time.Since(start)
				start = time.Now()
				t.run(b, i*pairTrials, pairTrials, slots)
				bare := time.Since(start)
				ratios = append(ratios, bare.Seconds()/mine.Seconds())
				ours = append(ours, pairTrials/mine.Seconds())
				bares = append(bares, pairTrials/bare.Seconds())
			}
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(ours), "trials/s")
			b.ReportMetric(median(bares), "bare/s")
		})
	}
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
