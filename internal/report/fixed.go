// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"math/big"
)

// fixedUnits is how many units of a fixed make one.
const fixedUnits = 1_000_000_000_000

// round12 rounds to 12 decimals.
func round12(x float64) float64 { return math.Round(x*fixedUnits) / fixedUnits }

// mean is the mean of numbers, each rounded to 12 decimals as it is added. The zero
// value is the mean of nothing.
type mean struct {
	sum big.Int // in units of 1e-12
	n   int64
}

// add adds a number that is at most a few thousand, such as a rate.
func (m *mean) add(x float64) {
	m.sum.Add(&m.sum, big.NewInt(int64(math.Round(x*fixedUnits))))
	m.n++
}

// addRatio adds num/den, of any size; den is above 0.
func (m *mean) addRatio(num *big.Int, den int64) {
	m.sum.Add(&m.sum, inUnits(num, den, fixedUnits))
	m.n++
}

// inUnits is num/den in whole units, of which so many make one; a half is rounded away
// from zero.
func inUnits(num *big.Int, den, units int64) *big.Int {
	var q, r big.Int
	q.Mul(num, big.NewInt(units))
	q.QuoRem(&q, big.NewInt(den), &r)
	// QuoRem cuts towards zero: carry when the rest is a half or more.
	if r.Abs(&r).Lsh(&r, 1).CmpAbs(big.NewInt(den)) >= 0 {
		q.Add(&q, big.NewInt(int64(num.Sign())))
	}
	return &q
}

// value is the mean, nil without numbers.
func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.orZero()
	return &v
}

// orZero is the mean, 0 without numbers, as the reference has it for times and counts.
func (m *mean) orZero() float64 {
	if m.n == 0 {
		return 0
	}
	return ratio(&m.sum, fixedUnits*m.n)
}

// seconds is orZero of times, which are measured in milliseconds: more than millionths
// of a second would say nothing.
func (m *mean) seconds() float64 {
	if m.n == 0 {
		return 0
	}
	return rounded(&m.sum, fixedUnits*m.n)
}

// micros is a sum of decimals, each rounded to millionths as it is added.
type micros struct{ sum big.Int }

const microUnits = 1_000_000

func (m *micros) add(x float64) {
	m.sum.Add(&m.sum, toMicros(x))
}

func (m *micros) value() float64 { return ratio(&m.sum, microUnits) }

// over is the sum divided by n.
func (m *micros) over(n int64) float64 { return ratio(&m.sum, microUnits*n) }

// toMicros rounds to millionths, half away from zero. A grader may give any finite
// number: what int64 can't hold takes the long way.
func toMicros(x float64) *big.Int {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return new(big.Int) // can't be in a record: JSON has no such number
	case math.Abs(x) < 1e9:
		return big.NewInt(int64(math.Round(x * microUnits)))
	}
	n, _ := new(big.Float).Mul(new(big.Float).SetPrec(1100).SetFloat64(x), big.NewFloat(microUnits)).Int(nil)
	return n
}

// rounded is num/den in 6 decimals.
func rounded(num *big.Int, den int64) float64 {
	return ratio(inUnits(num, den, microUnits), microUnits)
}

// ratio is num/den as the nearest float64, never infinite.
func ratio(num *big.Int, den int64) float64 {
	return bigRatio(num, big.NewInt(den))
}

func bigRatio(num, den *big.Int) float64 {
	f, _ := new(big.Rat).SetFrac(num, den).Float64()
	return max(-math.MaxFloat64, min(math.MaxFloat64, f))
}

// clamp is the sum as an int64, at the limit where it can't be one.
func clamp(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	default:
		return math.MaxInt64
	}
}
