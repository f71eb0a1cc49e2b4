// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"testing"
	"testing/synctest"
)

// Nobody gets in beside one that is alone, or waits to be, and everybody afterwards.
func TestCompanyOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		c := newCompany(g)
		if !c.enter() {
			t.Fatal("did not get in, with nobody there")
		}
		in := make(chan bool)
		go func() { in <- c.enterAlone(t.Context(), "first") }()
		synctest.Wait()
		if open, _ := g.look(); open || c.enter() || c.enterAlone(t.Context(), "second") {
			t.Fatalf("somebody waits to be alone, and yet others may come: gate open %t", open)
		}
		c.leave(false)
		if !<-in {
			t.Fatal("did not get in after the others had left")
		}
		if c.enter() || c.enterAlone(t.Context(), "third") {
			t.Fatal("somebody got in beside one that is alone")
		}
		c.leave(true)
		if open, _ := g.look(); !open {
			t.Fatal("the gate is held, and nobody is alone")
		}
		if !c.enterAlone(t.Context(), "fourth") {
			t.Fatal("nobody is there, and yet it did not get in")
		}
		c.leave(true)
	})
}

// Who is called off while it waits for others to go lets them in again.
func TestCompanyIsLeftAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompany(newGate())
		if !c.enter() {
			t.Fatal("did not get in")
		}
		ctx, cancel := context.WithCancel(t.Context())
		alone := make(chan bool)
		go func() { alone <- c.enterAlone(ctx, "suspect") }()
		synctest.Wait()
		cancel()
		if <-alone {
			t.Fatal("got in although it was called off")
		}
		if !c.enter() {
			t.Fatal("nobody is alone, and yet it did not get in")
		}
		c.leave(false)
		c.leave(false)
		if !c.enterAlone(t.Context(), "another") {
			t.Fatal("nobody is there, and yet it did not get in")
		}
		c.leave(true)
	})
}

// What died once runs beside others; what died often enough is buried only if it was alone
// when it came to that.
func TestWhoIsGuilty(t *testing.T) {
	for _, c := range []struct {
		most, died, alone int
		suspect, guilty   bool
	}{
		{3, 1, 0, false, false},
		{3, 2, 0, true, false},
		{3, 3, 1, true, true},
		{3, 9, 0, true, false}, // never alone: nothing is known of it
		{3, 2, 2, true, false},
		{1, 1, 0, true, false},
		{1, 1, 1, true, true},
		{2, 1, 0, true, false},
		{2, 2, 1, true, true},
		{5, 5, 2, true, false},
		{5, 5, 3, true, true},
	} {
		if got := c.died >= suspectFrom(c.most); got != c.suspect {
			t.Errorf("%+v: suspect %t", c, got)
		}
		if got := guilty(c.died, c.alone, c.most); got != c.guilty {
			t.Errorf("%+v: guilty %t", c, got)
		}
	}
}
