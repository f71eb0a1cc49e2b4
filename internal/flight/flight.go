// SPDX-License-Identifier: Apache-2.0

// Package flight makes a thing once for everybody who wants it, however many ask at
// the same time.
//
// A [Group] keeps what was made, and forgets failures. The making belongs to the group
// and not to whoever asked first: it goes on when that one gives up, and ends with the
// group. A panic in it is a failure like any other ([PanicError]).
package flight

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed: the group makes nothing any more.
var ErrClosed = errors.New("closed")

// Group makes values by key. Make one with [New]. Its methods may be called from many
// goroutines.
type Group[K comparable, V any] struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	calls  map[K]*call[V]
	closed bool
	making sync.WaitGroup
}

// call is a value that is being made or was made.
type call[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// New returns a group whose making ends when ctx does, with its cause.
func New[K comparable, V any](ctx context.Context) *Group[K, V] {
	g := &Group[K, V]{calls: map[K]*call[V]{}}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// Get returns the value of a key, made with produce if there is none. It gives up with
// ctx's cause; the making goes on meanwhile, with a context of the group's.
func (g *Group[K, V]) Get(ctx context.Context, key K, produce func(context.Context) (V, error)) (V, error) {
	var none V
	c, err := g.join(key, produce)
	if err != nil {
		return none, err
	}
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

func (g *Group[K, V]) join(key K, produce func(context.Context) (V, error)) (*call[V], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c, ok := g.calls[key]; ok {
		return c, nil
	}
	if g.closed {
		return nil, ErrClosed
	}
	c := &call[V]{done: make(chan struct{})}
	g.calls[key] = c
	g.making.Go(func() {
		c.err = Safely(func() (err error) {
			c.value, err = produce(g.ctx)
			return err
		})
		g.land(key, c)
	})
	return c, nil
}

func (g *Group[K, V]) land(key K, c *call[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.err != nil && g.calls[key] == c {
		delete(g.calls, key)
	}
	close(c.done)
}

// Forget drops what is kept of a key. Whoever waits for it still gets it.
func (g *Group[K, V]) Forget(key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.calls, key)
}

// Close ends what is being made, waits for it, and returns what was kept. It can be
// repeated, and returns nothing then.
func (g *Group[K, V]) Close() map[K]V {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel(ErrClosed)
	g.making.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := map[K]V{}
	for key, c := range g.calls {
		kept[key] = c.value
	}
	clear(g.calls)
	return kept
}
