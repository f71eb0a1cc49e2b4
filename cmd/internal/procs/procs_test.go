// SPDX-License-Identifier: Apache-2.0

package procs

import (
	goruntime "runtime"
	"testing"
)

func TestWiden(t *testing.T) {
	before := goruntime.GOMAXPROCS(0)
	defer goruntime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "3")
	if Widen(); goruntime.GOMAXPROCS(0) != before {
		t.Errorf("%d, though the environment says how many", goruntime.GOMAXPROCS(0))
	}
	t.Setenv("GOMAXPROCS", "")
	Widen()
	if Widen(); goruntime.GOMAXPROCS(0) != wide(before) { // once is enough
		t.Errorf("%d, want %d", goruntime.GOMAXPROCS(0), wide(before))
	}
	for processors, want := range map[int]int{1: 2, 2: 4, 8: 16, 64: 72} {
		if got := wide(processors); got != want {
			t.Errorf("%d with %d processors, want %d", got, processors, want)
		}
	}
}
