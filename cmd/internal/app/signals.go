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

// withSignals returns a context that the first signal ends. The channel of [Hurry]
// closes at the second. A third ends the process by the signal's own effect.
func withSignals(parent context.Context) (context.Context, func()) {
	signals := make(chan os.Signal, 2)
	watched := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup: the person wants it to go on
		watched = append(watched, syscall.SIGHUP)
	}
	signal.Notify(signals, watched...)
	ctx, stop := followSignals(parent, signals, func() { signal.Stop(signals) })
	return ctx, func() {
		signal.Stop(signals)
		stop()
	}
}

// followSignals is withSignals with the signals from a channel; enough is called when
// no more are wanted.
func followSignals(parent context.Context, signals <-chan os.Signal, enough func()) (context.Context, func()) {
	hurry := make(chan struct{})
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, hurryKey{}, (<-chan struct{})(hurry)))
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for _, act := range []func(){
			func() { cancel(ErrInterrupted) },
			func() { close(hurry); enough() },
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
