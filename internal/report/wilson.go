// SPDX-License-Identifier: Apache-2.0

package report

import "math"

// z95 is the 97.5th percentile of the normal distribution.
const z95 = 1.959963984540054

// Interval is [low, high].
type Interval [2]float64

// Wilson95 returns the Wilson score interval of a proportion at 95 %, nil when n is 0:
//
//	(p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n)      with p = passed/n
//
// It stays within [0, 1] and is honest for small n and for rates at the edge, where
// the textbook p ± z·√(p(1−p)/n) is not. It takes trials for independent: with
// repeats of few tasks, read the clustered standard error beside it.
//
// Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical
// Inference", JASA 22 (1927).
func Wilson95(passed, n int64) *Interval {
	if n <= 0 {
		return nil
	}
	size := float64(n)
	p := float64(passed) / size
	scale := 1 + z95*z95/size
	center := (p + z95*z95/(2*size)) / scale
	half := z95 / scale * math.Sqrt(p*(1-p)/size+z95*z95/(4*size*size))
	iv := Interval{round12(max(0, center-half)), round12(min(1, center+half))}
	// The bound at the edge is exact; arithmetic may miss it by a hair.
	if passed == 0 {
		iv[0] = 0
	}
	if passed == n {
		iv[1] = 1
	}
	return &iv
}

// Bounds are the success rates over all planned trials that are still possible.
type Bounds struct {
	// Worst takes every trial without a score for a failure.
	Worst float64 `json:"worst"`
	// Best takes every trial without a score for a success.
	Best float64 `json:"best"`
}

// NewBounds returns the bounds, nil when nothing was planned. Between them lies the
// rate that the run would have had, had nothing gone wrong; they meet when every
// trial was scored.
func NewBounds(passed, scored, planned int64) *Bounds {
	if planned <= 0 {
		return nil
	}
	n := float64(planned)
	return &Bounds{Worst: float64(passed) / n, Best: float64(passed+planned-scored) / n}
}
