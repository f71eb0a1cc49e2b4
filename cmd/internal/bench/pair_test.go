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
	for _, iso := range isolations {
		for _, slots := range slotCounts {
			b.Run(fmt.Sprintf("isolation=%s/slots=%d", iso.name, slots), func(b *testing.B) {
				r, t := newRig(b), newBare(b, iso)
				file := r.runFile(b, pairTrials, iso)
				done := 0
				var p pairs
				for range b.N {
					b.StopTimer()
					r.submit(b, file)
					b.StartTimer()
					p.run(func() { t.run(b, done, pairTrials, slots) }, func() { r.work(b, pairTrials, slots) })
					done += pairTrials
				}
				b.ReportMetric(p.ratio(), "ratio")
				b.ReportMetric(pairTrials/median(p.second), "trials/s")
				b.ReportMetric(pairTrials/median(p.first), "bare/s")
			})
		}
	}
}

// BenchmarkIsolationPrice sets trials in namespaces beside trials without, in turn: ms/trial
// is the median of what a trial takes longer with one slot.
func BenchmarkIsolationPrice(b *testing.B) {
	plain := isolations[0]
	for _, iso := range isolations[1:3] {
		b.Run("isolation="+iso.name, func(b *testing.B) {
			without, with := newRig(b), newRig(b)
			fileWithout, fileWith := without.runFile(b, pairTrials, plain), with.runFile(b, pairTrials, iso)
			var p pairs
			for range b.N {
				b.StopTimer()
				without.submit(b, fileWithout)
				with.submit(b, fileWith)
				b.StartTimer()
				p.run(func() { without.work(b, pairTrials, 1) }, func() { with.work(b, pairTrials, 1) })
			}
			var more []float64
			for i := range p.first {
				more = append(more, (p.second[i]-p.first[i])*1000/pairTrials)
			}
			b.ReportMetric(median(more), "ms/trial")
			b.ReportMetric(p.ratio(), "ratio")
		})
	}
}

// pairs are the seconds that two sides took, pair by pair.
type pairs struct{ first, second []float64 }

// run does one more pair. Who begins alternates.
func (p *pairs) run(first, second func()) {
	var a, b float64
	if len(p.first)%2 == 0 {
		a, b = seconds(first), seconds(second)
	} else {
		b, a = seconds(second), seconds(first)
	}
	p.first, p.second = append(p.first, a), append(p.second, b)
}

// ratio is the median of the first side's time by the second's.
func (p *pairs) ratio() float64 {
	ratios := make([]float64, len(p.first))
	for i := range ratios {
		ratios[i] = p.first[i] / p.second[i]
	}
	return median(ratios)
}

func seconds(do func()) float64 {
	start := time.Now()
	do()
	return time.Since(start).Seconds()
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
