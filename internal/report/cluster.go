// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"math/big"
)

// cluster sums up what the task-clustered standard error needs. Each task is given
// once, with the sum x of its n scored values.
type cluster struct {
	x, n, xx, xn, nn big.Int
	tasks            int64
}

func (c *cluster) add(x *big.Int, n int64) {
	if n == 0 {
		return
	}
	size := big.NewInt(n)
	var t big.Int
	c.x.Add(&c.x, x)
	c.n.Add(&c.n, size)
	c.xx.Add(&c.xx, t.Mul(x, x))
	c.xn.Add(&c.xn, t.Mul(x, size))
	c.nn.Add(&c.nn, t.Mul(size, size))
	c.tasks++
}

// stderr is the standard error of the mean X/N of all values, where the values of a
// task hang together and tasks are independent:
//
//	SE² = T/(T−1) · Σ (x_t − (X/N)·n_t)² / N²
//	    = T/(T−1) · (N²·Σx² − 2·X·N·Σxn + X²·Σn²) / N⁴
//
// for T tasks; in the second form every sum is an integer. With one value a task it is
// the usual standard error of a mean. It is nil below two tasks. unit is how many units
// of x make one.
//
// Source: E. Miller, "Adding Error Bars to Evals" (2024), section 2.2, with the usual
// correction for the number of clusters.
func (c *cluster) stderr(unit int64) *float64 {
	if c.tasks < 2 {
		return nil
	}
	var n2, x2, num, t big.Int
	n2.Mul(&c.n, &c.n)
	x2.Mul(&c.x, &c.x)
	num.Mul(&n2, &c.xx)
	t.Mul(&c.x, &c.n)
	t.Mul(&t, &c.xn)
	num.Sub(&num, t.Lsh(&t, 1))
	num.Add(&num, t.Mul(&x2, &c.nn))
	num.Mul(&num, big.NewInt(c.tasks))
	den := new(big.Int).Mul(&n2, &n2)
	den.Mul(den, big.NewInt(c.tasks-1))
	den.Mul(den, big.NewInt(unit))
	den.Mul(den, big.NewInt(unit))
	se := math.Sqrt(bigRatio(&num, den))
	if se < 1000 {
		se = round12(se) // larger ones, of scores of any size, have no 12 decimals
	}
	return &se
}
