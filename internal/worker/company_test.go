// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Who has to be alone waits for its turn behind another that is, but not for ever.
func TestCompanyTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompany(newGate())
		if !c.enterAlone(t.Context(), time.Minute, "first") {
			t.Fatal("the first did not get in, with nobody there")
		}
		if c.enter() {
			t.Fatal("somebody got in beside one that is alone")
		}
		second := make(chan bool)
		go func() { second <- c.enterAlone(t.Context(), time.Minute, "second") }()
		time.Sleep(59 * time.Second)
		c.leave(true)
		if !<-second {
			t.Fatal("the second did not get in after the first had left")
		}
		if c.enterAlone(t.Context(), time.Minute, "third") {
			t.Fatal("the third got in beside the second")
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { second <- c.enterAlone(ctx, time.Hour, "fourth") }()
		synctest.Wait()
		cancel()
		if <-second {
			t.Fatal("the fourth got in although it was called off")
		}
		c.leave(true)
		if !c.enter() {
			t.Fatal("nobody is there, and yet it did not get in")
		}
		c.leave(false)
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
		go func() { alone <- c.enterAlone(ctx, time.Hour, "suspect") }()
		synctest.Wait()
		next := make(chan bool)
		go func() { next <- c.enterAlone(t.Context(), time.Hour, "another") }()
		synctest.Wait()
		cancel()
		if <-alone {
			t.Fatal("got in although it was called off")
		}
		c.leave(false)
		if !<-next {
			t.Fatal("the next in line was not told")
		}
		c.leave(true)
	})
}
