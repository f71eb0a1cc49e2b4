// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// watch listens to what the engine tells of all containers of the store. A kill for want
// of memory is told there and nowhere else: the state of a container has it only for
// PID 1. The stream is one per runtime, and taken up again where it broke off.
type watch struct {
	engine *engine
	store  string

	mu        sync.Mutex
	cancel    context.CancelFunc // nil before begin
	done      chan struct{}
	boxes     map[string]*Sandbox // by container id
	commands  map[string]*command // by exec id
	ooms      map[string]int      // by container id
	connected bool
	breaks    int   // how often the stream broke
	last      int64 // time of the last event, by the engine's clock
}

func newWatch(e *engine, store string) *watch {
	return &watch{
		engine: e, store: store,
		boxes: map[string]*Sandbox{}, commands: map[string]*command{}, ooms: map[string]int{},
	}
}

// begin starts to listen, once. now is what the engine's clock says.
func (w *watch) begin(now string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		return
	}
	if t, err := time.Parse(time.RFC3339Nano, now); err == nil {
		w.last = t.UnixNano()
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.done = cancel, make(chan struct{})
	go func() {
		defer close(w.done)
		w.run(ctx)
	}()
}

func (w *watch) close() {
	w.mu.Lock()
	cancel, done := w.cancel, w.done
	if cancel == nil {
		w.cancel = func() {} // begins no more
	}
	w.mu.Unlock()
	if done != nil {
		cancel()
		<-done
	}
}

func (w *watch) run(ctx context.Context) {
	const least, most = 100 * time.Millisecond, 5 * time.Second
	for wait := least; ctx.Err() == nil; wait = min(2*wait, most) {
		if w.listen(ctx) {
			wait = least
		}
		w.mu.Lock()
		w.connected = false
		w.breaks++
		for _, c := range w.commands {
			c.look()
		}
		w.mu.Unlock()
		_ = pause(ctx, wait)
	}
}

// listen takes events until the stream breaks, and returns whether there was one.
func (w *watch) listen(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	since := w.last
	w.mu.Unlock()
	opts := events.ListOptions{Filters: filters.NewArgs(
		filters.Arg("type", string(events.ContainerEventType)),
		filters.Arg("label", labelStore+"="+w.store),
		filters.Arg("event", string(events.ActionOOM)),
		filters.Arg("event", string(events.ActionExecDie)),
		filters.Arg("event", string(events.ActionDie)),
		filters.Arg("event", string(events.ActionDestroy)),
	)}
	if since > 0 {
		opts.Since = fmt.Sprintf("%d.%09d", since/1e9, since%1e9)
	}
	// Events returns when the engine has answered.
	late := time.AfterFunc(w.engine.short, cancel)
	messages, errs := w.engine.Events(ctx, opts)
	late.Stop()
	select {
	case <-errs:
		return false
	default:
	}
	w.mu.Lock()
	w.connected = true
	w.mu.Unlock()
	for {
		select {
		case m := <-messages:
			w.take(m)
		case <-errs:
			return true
		}
	}
}

// take passes an event on. One that was told before the stream broke is told again.
func (w *watch) take(m events.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.TimeNano <= w.last {
		return
	}
	w.last = m.TimeNano
	switch m.Action {
	case events.ActionOOM:
		if w.boxes[m.Actor.ID] != nil {
			w.ooms[m.Actor.ID]++
		}
	case events.ActionExecDie:
		if c := w.commands[m.Actor.Attributes["execID"]]; c != nil {
			c.died()
		}
	case events.ActionDie, events.ActionDestroy:
		for _, c := range w.commands {
			if c.box == m.Actor.ID {
				c.look()
			}
		}
	}
}

func (w *watch) add(s *Sandbox) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.boxes[s.box.ID] = s
}

func (w *watch) drop(s *Sandbox) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.boxes, s.box.ID)
	delete(w.ooms, s.box.ID)
}

// enlist notes a command before it is started.
func (w *watch) enlist(c *command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.ooms, c.breaks, c.watched = w.ooms[c.box], w.breaks, w.connected
	w.commands[c.id] = c
}

func (w *watch) delist(c *command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.commands, c.id)
}

// renew notes that a command's own connection outlived whatever broke before.
func (w *watch) renew(c *command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.connected {
		c.breaks, c.watched = w.breaks, true
	}
}

// broke reports whether the stream broke since the command was enlisted, or last seen to go
// on. A stream that there wasn't tells nothing.
func (w *watch) broke(c *command) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return c.watched && (!w.connected || w.breaks != c.breaks)
}

// outlived waits until the stream told of the command's end, or broke, or says nothing. That
// it told and didn't break proves that it was there when the command ended.
func (w *watch) outlived(c *command) bool {
	w.mu.Lock()
	watched := c.watched
	w.mu.Unlock()
	if !watched {
		return true
	}
	const late, look = 2 * time.Second, 50 * time.Millisecond
	for end := time.Now().Add(late); !w.broke(c) && time.Now().Before(end); {
		t := time.NewTimer(look)
		select {
		case <-c.dead:
			t.Stop()
			return !w.broke(c)
		case <-t.C:
		}
	}
	return !w.broke(c)
}

// sawOOM reports whether something in the command's container was killed for want of
// memory since it was enlisted.
func (w *watch) sawOOM(c *command) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ooms[c.box] > c.ooms
}
