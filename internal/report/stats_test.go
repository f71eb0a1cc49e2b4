// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPassK(t *testing.T) {
	for _, tc := range []struct {
		n, c, k int64
		at, hat float64
	}{
		{8, 5, 1, 0.625, 0.625},
		{8, 2, 4, 0.785714285714, 0},
		{8, 8, 8, 1, 1},
		{8, 0, 3, 0, 0},
		{5, 4, 2, 1, 0.6},
		{4, 2, 2, 5.0 / 6, 1.0 / 6},
		{10, 9, 10, 1, 0},
		{100_000, 50_000, 1, 0.5, 0.5},
	} {
		at, err := PassAtK(tc.n, tc.c, tc.k)
		if err != nil || !near(at, tc.at) {
			t.Errorf("pass@%d of %d in %d = %v, %v; want %v", tc.k, tc.c, tc.n, at, err, tc.at)
		}
		hat, err := PassHatK(tc.n, tc.c, tc.k)
		if err != nil || !near(hat, tc.hat) {
			t.Errorf("pass^%d of %d in %d = %v, %v; want %v", tc.k, tc.c, tc.n, hat, err, tc.hat)
		}
	}
	for _, bad := range [][3]int64{{5, 6, 1}, {5, -1, 1}, {-1, -1, 1}, {5, 3, 0}, {5, 3, -2}, {5, 3, 6}, {0, 0, 1}} {
		if v, err := PassAtK(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("PassAtK%v = %v, want an error", bad, v)
		}
		if v, err := PassHatK(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("PassHatK%v = %v, want an error", bad, v)
		}
	}
}

// The product is compared with exact binomials.
func TestPassKIsBinomial(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 300).Draw(t, "n")
		c := rapid.Int64Range(0, n).Draw(t, "c")
		k := rapid.Int64Range(1, n).Draw(t, "k")
		all := new(big.Int).Binomial(n, k)
		exact := func(marked int64) float64 {
			f, _ := new(big.Rat).SetFrac(new(big.Int).Binomial(marked, k), all).Float64()
			return f
		}
		if at, _ := PassAtK(n, c, k); !near(at, 1-exact(n-c)) {
			t.Fatalf("pass@k = %v, want %v", at, 1-exact(n-c))
		}
		if hat, _ := PassHatK(n, c, k); !near(hat, exact(c)) {
			t.Fatalf("pass^k = %v, want %v", hat, exact(c))
		}
		if k > 1 {
			less, _ := PassAtK(n, c, k-1)
			if at, _ := PassAtK(n, c, k); at < less {
				t.Fatalf("pass@%d = %v is below pass@%d = %v", k, at, k-1, less)
			}
		}
	})
}

func TestWilson95(t *testing.T) {
	for _, tc := range []struct {
		passed, n int64
		lo, hi    float64
	}{
		{0, 10, 0, 0.277532799862},
		{10, 10, 0.722467200138, 1},
		{5, 10, 0.236593090512, 0.763406909488},
		{1, 1, 0.206549314377, 1},
		{0, 1, 0, 0.793450685623},
	} {
		got := Wilson95(tc.passed, tc.n)
		if math.Abs(got[0]-tc.lo) > 1e-6 || math.Abs(got[1]-tc.hi) > 1e-6 {
			t.Errorf("Wilson95(%d, %d) = %v, want [%v, %v]", tc.passed, tc.n, *got, tc.lo, tc.hi)
		}
	}
	// R. G. Newcombe, Statistics in Medicine 17 (1998), table I: .2553 to .3662.
	if got := Wilson95(81, 263); math.Abs(got[0]-0.2553) > 5e-5 || math.Abs(got[1]-0.3662) > 5e-5 {
		t.Errorf("Wilson95(81, 263) = %v, want [.2553, .3662]", *got)
	}
	if got := Wilson95(0, 0); got != nil {
		t.Errorf("Wilson95(0, 0) = %v, want none", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1_000_000).Draw(t, "n")
		c := rapid.Int64Range(0, n).Draw(t, "c")
		iv, mirror, p := Wilson95(c, n), Wilson95(n-c, n), float64(c)/float64(n)
		if iv[0] < 0 || iv[0] > p || iv[1] < p || iv[1] > 1 {
			t.Fatalf("[%v, %v] does not hold %v", iv[0], iv[1], p)
		}
		if !near(iv[0], 1-mirror[1]) || !near(iv[1], 1-mirror[0]) {
			t.Fatalf("%v is not the mirror of %v", iv, mirror)
		}
	})
}

func TestBounds(t *testing.T) {
	if got := *NewBounds(3, 6, 10); got != (Bounds{Worst: 0.3, Best: 0.7}) {
		t.Errorf("bounds = %+v", got)
	}
	if got := NewBounds(0, 0, 0); got != nil {
		t.Errorf("bounds of nothing = %+v", got)
	}
}

func TestPercentiles(t *testing.T) {
	for _, tc := range []struct {
		values []int64
		p      int
		want   float64
	}{
		{nil, 50, 0},
		{[]int64{7}, 1, 7},
		{[]int64{7}, 99, 7},
		{[]int64{5, 3, 1, 4, 2}, 50, 3},
		{[]int64{1, 2, 3, 4, 5}, 90, 4.6},
		{[]int64{1, 2, 3, 4, 5}, 0, 1},
		{[]int64{1, 2, 3, 4, 5}, 100, 5},
		{[]int64{1, 1, 1, 1000}, 50, 1},
		{[]int64{1, 1, 1, 1001}, 99, 971},
		{[]int64{-5, 10}, 50, 5}, // below 0 counts as 0
	} {
		var c Counts
		for _, v := range tc.values {
			c.Add(v)
		}
		if got := c.Percentile(tc.p); !near(got, tc.want) {
			t.Errorf("p%d of %v = %v, want %v", tc.p, tc.values, got, tc.want)
		}
	}
}

func TestPercentilesOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 200).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		p := rapid.IntRange(0, 100).Draw(t, "p")
		var a, b Counts
		for _, v := range values[:cut] {
			a.Add(v)
		}
		for _, v := range values[cut:] {
			b.Add(v)
		}
		b.Merge(&a)
		sorted := slices.Sorted(slices.Values(values))
		at := float64(len(sorted)-1) * float64(p) / 100
		low := sorted[int(at)]
		want := float64(low)
		if int(at)+1 < len(sorted) {
			want += (at - math.Floor(at)) * float64(sorted[int(at)+1]-low)
		}
		if got := b.Percentile(p); !near(got, want) || b.Len() != int64(len(values)) {
			t.Fatalf("p%d = %v of %d, want %v of %d", p, got, b.Len(), want, len(values))
		}
	})
}

func TestClusteredStandardError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type cell struct{ x, n int64 }
		cells := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cell {
			n := rapid.Int64Range(1, 20).Draw(t, "n")
			return cell{rapid.Int64Range(0, n).Draw(t, "x"), n}
		}), 2, 30).Draw(t, "tasks")
		var c cluster
		var x, n float64
		for _, k := range cells {
			c.add(big.NewInt(k.x), k.n)
			x += float64(k.x)
			n += float64(k.n)
		}
		var sum float64
		for _, k := range cells {
			d := float64(k.x) - x/n*float64(k.n)
			sum += d * d
		}
		count := float64(len(cells))
		want := math.Sqrt(sum*count/(count-1)) / n
		if got := c.stderr(1); math.Abs(*got-want) > 1e-9 {
			t.Fatalf("standard error = %v, want %v", *got, want)
		}
	})
	// One value a task: the usual error of a mean, sqrt(p(1-p)/(n-1)).
	var c cluster
	for i := range int64(10) {
		c.add(big.NewInt(i%2), 1)
	}
	if got, want := *c.stderr(1), math.Sqrt(0.25/9); !near(got, want) {
		t.Errorf("standard error = %v, want %v", got, want)
	}
	var one cluster
	one.add(big.NewInt(3), 5)
	one.add(big.NewInt(0), 0) // a task without scores is no cluster
	if got := one.stderr(1); got != nil {
		t.Errorf("standard error of one task = %v, want none", *got)
	}
}

func TestSumsOfAnySize(t *testing.T) {
	var m micros
	for _, x := range []float64{math.MaxFloat64, 0.1, 0.2, -math.MaxFloat64} {
		m.add(x)
	}
	if got := m.value(); !near(got, 0.3) {
		t.Errorf("sum = %v, want 0.3: nothing is lost beside large numbers", got)
	}
	m.add(math.MaxFloat64)
	m.add(math.MaxFloat64)
	if got := m.value(); got != math.MaxFloat64 {
		t.Errorf("sum = %v, want the largest number: infinity is not JSON", got)
	}
	var half mean
	half.addRatio(big.NewInt(-1), 3)
	half.addRatio(big.NewInt(1), 3)
	if got := *half.value(); got != 0 {
		t.Errorf("mean of -1/3 and 1/3 = %v", got)
	}
	var two mean
	two.addRatio(big.NewInt(2), 3)
	if got := *two.value(); got != 0.666666666667 {
		t.Errorf("2/3 = %v, want it rounded to 12 decimals", got)
	}
}
