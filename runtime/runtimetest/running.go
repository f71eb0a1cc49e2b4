// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

var errEnough = errors.New("the suite has seen enough")

// running is a command that the suite didn't wait for.
type running struct {
	f      *fixture
	out    *lineWatch
	cancel context.CancelCauseFunc
	done   chan struct{}
	exit   runtime.Exit
	err    error
}

// start runs a command in a goroutine; the topic's end waits for it.
func (f *fixture) start(sb runtime.Sandbox, cmd runtime.Command) *running {
	f.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &running{f: f, out: newLineWatch(), cancel: cancel, done: make(chan struct{})}
	cmd.Stdout = r.out
	go func() {
		defer close(r.done)
		r.exit, r.err = sb.Exec(ctx, cmd)
	}()
	f.Cleanup(func() {
		cancel(errEnough)
		r.wait()
	})
	return r
}

// awaitLine waits until the program printed a line, or fails when it ended before.
func (r *running) awaitLine(line string) {
	r.f.Helper()
	select {
	case <-r.out.seen(line):
	case <-r.done:
		if !r.out.has(line) {
			r.f.Fatalf("the command ended without printing %q: exit %+v, error %v, printed %q", line, r.exit, r.err, r.out.String())
		}
	case <-time.After(r.f.h.Patience):
		r.f.Fatalf("the command printed no %q; it printed %q", line, r.out.String())
	}
}

func (r *running) poll() (runtime.Exit, bool) {
	select {
	case <-r.done:
		return r.exit, true
	default:
		return runtime.Exit{}, false
	}
}

func (r *running) wait() (runtime.Exit, error) {
	r.f.Helper()
	select {
	case <-r.done:
	case <-time.After(r.f.h.Patience):
		r.f.Fatal("Exec doesn't return")
	}
	return r.exit, r.err
}

// lineWatch is a writer that tells when a line went by.
type lineWatch struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	waits map[string]chan struct{}
}

func newLineWatch() *lineWatch { return &lineWatch{waits: map[string]chan struct{}{}} }

func (w *lineWatch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	w.check()
	return len(p), nil
}

func (w *lineWatch) check() {
	for line, ch := range w.waits {
		if strings.Contains("\n"+w.buf.String(), "\n"+line+"\n") {
			close(ch)
			delete(w.waits, line)
		}
	}
}

func (w *lineWatch) seen(line string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch, ok := w.waits[line]
	if !ok {
		ch = make(chan struct{})
		w.waits[line] = ch
	}
	w.check()
	return ch
}

func (w *lineWatch) has(line string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains("\n"+w.buf.String(), "\n"+line+"\n")
}

func (w *lineWatch) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
