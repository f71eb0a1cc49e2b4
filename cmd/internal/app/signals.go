// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// ErrInterrupted is the cause of a command's context when a signal ended it.
var ErrInterrupted = errors.New("interrupted")

type hurryKey struct{}

// withSignals returns a context that the first SIGINT or SIGTERM ends. The channel of
// [Hurry] closes at the second. A third ends the process by the signal's own effect.
func withSignals(parent context.Context) (context.Context, func()) {
	hurry := make(chan struct{})
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, hurryKey{}, (<-chan struct{})(hurry)))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for _, act := range []func(){
			func() { cancel(ErrInterrupted) },
			func() { close(hurry); signal.Stop(signals) },
		} {
			select {
			case <-quit:
				return
			case <-signals:
				act()
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(quit)
		done.Wait()
		cancel(nil)
	}
}

// Hurry returns a channel that closes when the person asked a second time to stop.
func Hurry(ctx context.Context) <-chan struct{} {
	ch, _ := ctx.Value(hurryKey{}).(<-chan struct{})
	return ch
}
