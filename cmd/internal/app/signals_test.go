// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

const patience = time.Minute

func wait(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
}

func TestTheFirstSignalStopsAndTheSecondHurries(t *testing.T) {
	signals, enough := make(chan os.Signal), make(chan struct{})
	ctx, stop := followSignals(t.Context(), signals, func() { close(enough) })
	defer stop()
	signals <- os.Interrupt
	wait(t, "the end of the context", ctx.Done())
	if cause := context.Cause(ctx); !errors.Is(cause, ErrInterrupted) {
		t.Errorf("cause %v; want %v", cause, ErrInterrupted)
	}
	select {
	case <-Hurry(ctx):
		t.Fatal("the first signal hurries already")
	default:
	}
	signals <- syscall.SIGTERM
	wait(t, "hurry", Hurry(ctx))
	wait(t, "giving the signals back, so that a third one kills", enough)
}

func TestWithoutSignalsNothingIsLeft(t *testing.T) {
	ctx, stop := withSignals(t.Context())
	if err := ctx.Err(); err != nil {
		t.Fatal(err)
	}
	stop()
	wait(t, "the end of the context", ctx.Done())
	if cause := context.Cause(ctx); errors.Is(cause, ErrInterrupted) {
		t.Errorf("cause %v; nobody interrupted", cause)
	}
}

func TestHurryWithoutSignals(t *testing.T) {
	if Hurry(t.Context()) != nil {
		t.Error("a context without signals has a channel")
	}
}
