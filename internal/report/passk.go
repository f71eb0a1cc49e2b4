// SPDX-License-Identifier: Apache-2.0

package report

import "fmt"

// PassAtK is the unbiased estimate of the chance that at least one of k trials of a
// task passes, from n trials of which c passed:
//
//	pass@k = 1 − C(n−c, k) / C(n, k) = 1 − ∏ (n−c−i)/(n−i)      i = 0 … k−1
//
// The product has only factors between 0 and 1, so it neither overflows nor loses
// digits as binomials would. Fewer trials than k tell nothing: that is an error.
//
// Source: M. Chen et al., "Evaluating Large Language Models Trained on Code" (2021),
// equation 1.
func PassAtK(n, c, k int64) (float64, error) {
	if err := checkPassK(n, c, k); err != nil {
		return 0, fmt.Errorf("pass@%d: %w", k, err)
	}
	return round12(1 - drawAll(n, n-c, k)), nil
}

// PassHatK is the unbiased estimate of the chance that all k of k trials of a task
// pass, from n trials of which c passed:
//
//	pass^k = C(c, k) / C(n, k) = ∏ (c−i)/(n−i)      i = 0 … k−1
//
// Source: S. Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in
// Real-World Domains" (2024).
func PassHatK(n, c, k int64) (float64, error) {
	if err := checkPassK(n, c, k); err != nil {
		return 0, fmt.Errorf("pass^%d: %w", k, err)
	}
	return round12(drawAll(n, c, k)), nil
}

// drawAll is the chance that k draws without replacement from n, m of which are
// marked, are all marked.
func drawAll(n, m, k int64) float64 {
	if k > m {
		return 0
	}
	p := 1.0
	for i := range k {
		p *= float64(m-i) / float64(n-i)
	}
	return p
}

func checkPassK(n, c, k int64) error {
	switch {
	case k < 1:
		return fmt.Errorf("k is %d, want 1 or more", k)
	case c < 0 || n < 0:
		return fmt.Errorf("%d of %d trials passed, want none below 0", c, n)
	case c > n:
		return fmt.Errorf("%d of %d trials passed, want at most all", c, n)
	case k > n:
		return fmt.Errorf("only %d trials, want %d or more", n, k)
	}
	return nil
}

// PassK is pass@k and pass^k of a run: means over the tasks that have k scored trials
// or more. Both are null where no task has.
type PassK struct {
	K       int64    `json:"k"`
	PassAt  *float64 `json:"pass@k"`
	PassHat *float64 `json:"pass^k"`
	// Tasks is how many the means are over.
	Tasks int64 `json:"tasks"`
}

// referenceKs are the values of k that have keys of their own.
var referenceKs = [...]int64{1, 5, 10}
