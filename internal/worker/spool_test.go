// SPDX-License-Identifier: Apache-2.0

package worker

import "testing"

func TestInSpool(t *testing.T) {
	w := &Worker{spools: map[string]bool{}}
	w.occupy("abc.1")
	for name, want := range map[string]bool{
		"abc.1": true, "abc.1.panic": true, "abc.10": false, "abc.2": false, "abc": false, "": false, "xabc.1": false,
	} {
		if got := w.InSpool(name); got != want {
			t.Errorf("%q: %v; want %v", name, got, want)
		}
	}
	w.vacate("abc.1")
	if w.InSpool("abc.1") {
		t.Error("it is in use after its end")
	}
}
