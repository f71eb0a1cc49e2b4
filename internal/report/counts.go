// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"

	"github.com/tidemill/tidemill/bundle"
)

// Counts is how often each whole number of milliseconds occurred. It grows with the
// distinct values, not with the trials, and its percentiles are exact. Counts that
// were made apart can be merged; order never matters. The zero value is empty.
type Counts struct {
	by map[int64]int64
	n  int64
}

// Add counts a value; below 0 counts as 0.
func (c *Counts) Add(ms int64) {
	if c.by == nil {
		c.by = map[int64]int64{}
	}
	c.by[max(0, ms)]++
	c.n++
}

// Merge adds what another has counted.
func (c *Counts) Merge(other *Counts) {
	if c.by == nil {
		c.by = make(map[int64]int64, len(other.by))
	}
	for ms, n := range other.by {
		c.by[ms] += n
	}
	c.n += other.n
}

// Len is how many values were counted.
func (c *Counts) Len() int64 { return c.n }

// reset empties it and keeps the room.
func (c *Counts) reset() { clear(c.by); c.n = 0 }

// hundredths are per millisecond: a percentile of whole milliseconds, interpolated at
// a whole percent, is a whole number of them.
const hundredths = 100

// Percentile returns the p-th percentile (0 to 100) in milliseconds: of the sorted
// values the one at (n−1)·p/100, interpolated linearly between its neighbours. It is 0
// when empty, and the only value when there is one.
func (c *Counts) Percentile(p int) float64 {
	return float64(c.percentiles(p)[0]) / hundredths
}

// percentiles returns several, in hundredths of milliseconds.
func (c *Counts) percentiles(ps ...int) []int64 {
	out := make([]int64, len(ps))
	if c.n == 0 {
		return out
	}
	values := slices.Sorted(maps.Keys(c.by))
	ends := make([]int64, len(values)) // rank after the last of each value
	var sum int64
	for i, v := range values {
		sum += c.by[v]
		ends[i] = sum
	}
	at := func(rank int64) int64 {
		i, found := slices.BinarySearch(ends, rank)
		if found { // ends[i] is the first rank of the next value
			i++
		}
		return values[i]
	}
	for i, p := range ps {
		pos := (c.n - 1) * int64(min(100, max(0, p)))
		low, rest := at(pos/100), pos%100
		out[i] = low * hundredths
		if rest > 0 {
			out[i] += rest * (at(pos/100+1) - low)
		}
	}
	return out
}

// latency are the percentiles that every report has.
type latency struct{ p50, p90, p99 int64 } // in hundredths of milliseconds

func (c *Counts) latency() latency {
	p := c.percentiles(50, 90, 99)
	return latency{p[0], p[1], p[2]}
}

// secs turns hundredths of milliseconds to seconds.
func secs(n int64) float64 { return float64(n) / (1000 * hundredths) }

// millis is the whole latency of a trial.
func millis(m bundle.Metrics) int64 { return max(0, m.LatencyTotalS.Millis()) }
