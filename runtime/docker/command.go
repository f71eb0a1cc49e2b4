// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/tidemill/tidemill/runtime"
)

// command is one exec of the engine's.
type command struct {
	id     string
	box    string // id of the container
	engine *engine
	stream *stream

	// Of the watch, when it was enlisted or last seen to go on; guarded by the watch.
	ooms, breaks int
	watched      bool // it listened

	streamed chan struct{} // closed when the output has ended
	outErr   error         // of the connection; valid after streamed
	keepErr  error         // of a writer; likewise
	unsaid   []byte        // what may be the engine's text about a failed start; likewise
	first    *firstText
	fed      chan struct{} // closed when stdin has ended
	feedErr  error         // valid after fed

	dieOnce sync.Once
	dead    chan struct{} // closed when the engine told of its end
	poke    chan struct{} // somebody thinks it is worth looking

	over   chan struct{}         // closed when it has ended, or nobody can know
	info   container.ExecInspect // valid after over, where err is nil
	err    error                 // likewise
	beside bool                  // it was killed for another command's sake; guarded by the sandbox's mu
}

func newCommand(e *engine, box, id string) *command {
	return &command{
		id: id, box: box, engine: e,
		streamed: make(chan struct{}), fed: make(chan struct{}), dead: make(chan struct{}), over: make(chan struct{}),
		poke: make(chan struct{}, 1),
	}
}

func (c *command) died() { c.dieOnce.Do(func() { close(c.dead) }) }

func (c *command) look() {
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

func (c *command) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

func (c *command) inspect(ctx context.Context) (container.ExecInspect, error) {
	return quick(ctx, c.engine, "inspect exec", func(ctx context.Context) (container.ExecInspect, error) {
		return c.engine.ContainerExecInspect(ctx, c.id)
	})
}

// serve carries the streams.
func (c *command) serve(cmd runtime.Command) {
	out, errs := &keeper{to: cmd.Stdout}, &keeper{to: cmd.Stderr}
	c.first = &firstText{to: out, started: func() bool {
		info, err := c.inspect(context.Background()) // has a deadline of its own
		return err == nil && info.Pid != 0
	}}
	go func() {
		defer close(c.streamed)
		if _, err := stdcopy.StdCopy(c.first, errs, c.stream); !errors.Is(err, net.ErrClosed) {
			c.outErr = err // and not that we closed it
		}
		c.unsaid = c.first.held
		c.keepErr = errors.Join(out.err, errs.err)
	}()
	if cmd.Stdin == nil {
		close(c.fed)
		return
	}
	go func() {
		defer close(c.fed)
		c.feedErr = c.feed(cmd.Stdin)
	}()
}

func (c *command) feed(from io.Reader) error {
	_, err := io.Copy(c.stream.conn, from)
	if err == nil {
		err = c.stream.closeWrite()
	}
	// A program need not read what it is given, and may have ended.
	for _, fine := range []error{syscall.EPIPE, syscall.ECONNRESET, syscall.ENOTCONN, net.ErrClosed, os.ErrDeadlineExceeded} {
		if errors.Is(err, fine) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("give input: %w", err)
	}
	return nil
}

// finish ends the streams of a command that is over. What the program printed is read to
// the end in any case, unless a child keeps the streams open.
func (c *command) finish(grace time.Duration) {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-c.streamed:
	case <-t.C:
	}
	_ = c.stream.conn.Close()
	<-c.streamed // a writer that doesn't take what it is given holds it up
	t.Reset(grace)
	select {
	case <-c.fed:
	case <-t.C: // its reader doesn't return
	}
}

// errCut says that the connection broke under a command: what it printed is not whole, and
// its stdin ended, which may have changed what it did.
var errCut = errors.New("the connection to the engine broke while the command ran")

// follow waits for the end of the command and notes how it was. The engine tells of it in
// its events; the end of the output hints at it; and now and then it is asked.
func (c *command) follow(ctx context.Context, w *watch) {
	defer close(c.over)
	const least, most = 10 * time.Millisecond, 2 * time.Second
	streamed, dead := c.streamed, c.dead
	wait, silent := most, time.Time{}
	for {
		t := time.NewTimer(wait)
		select {
		case <-streamed:
			streamed, wait = nil, least
		case <-dead:
			dead, wait = nil, least
		case <-c.poke:
		case <-t.C:
			wait = min(2*wait, most)
			if streamed != nil {
				w.renew(c)
			} else if c.cut(w) {
				c.err = errCut
				return
			}
		case <-ctx.Done():
			t.Stop()
			c.err = context.Cause(ctx)
			return
		}
		t.Stop()
		info, err := c.inspect(ctx)
		switch {
		case err == nil && !info.Running:
			c.info = info
			return
		case err == nil:
			silent = time.Time{}
		case isAnswer(err):
			c.err = err
			return
		case silent.IsZero():
			silent, wait = time.Now(), least
		case time.Since(silent) > c.engine.short:
			c.err = err
			return
		}
	}
}

// cut tells whether the output ended although the program went on, and not because the
// program closed it. That another connection broke as well is the sign.
func (c *command) cut(w *watch) bool { return c.outErr != nil || w.broke(c) }

// keeper gives a writer what it takes, and goes on reading for one that failed: the
// program didn't do anything wrong.
type keeper struct {
	to  io.Writer
	err error
}

func (k *keeper) Write(p []byte) (int, error) {
	if k.to != nil && k.err == nil && len(p) > 0 {
		if _, err := k.to.Write(p); err != nil {
			k.err = fmt.Errorf("keep output: %w", err)
		}
	}
	return len(p), nil
}

// firstText holds back the first text on stdout where it may be the engine's: that is how
// it says that a program could not be started. The engine ends it like a line of a
// terminal, so what programs print is hardly ever held up for the time of one question.
type firstText struct {
	to      io.Writer
	started func() bool
	decided bool
	held    []byte
}

func (f *firstText) Write(p []byte) (int, error) {
	if f.decided {
		return f.to.Write(p)
	}
	f.held = append(f.held, p...)
	if len(f.held) < 64<<10 && bytes.HasSuffix(f.held, []byte("\r\n")) && !f.started() {
		return len(p), nil
	}
	return len(p), f.release()
}

// release passes on what was held back.
func (f *firstText) release() error {
	f.decided = true
	held := f.held
	f.held = nil
	_, err := f.to.Write(held)
	return err
}
