// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Nest is the namespaces of one sandbox.
type Nest struct {
	warden  *Warden
	name    string
	sock    *os.File
	dirs    []*os.File
	init    int
	serial  atomic.Uint64
	sending sync.Mutex

	closing sync.Mutex
	closed  bool
}

// Open makes a nest. If ctx ends in the middle nothing is left.
func (w *Warden) Open(ctx context.Context, spec Spec) (*Nest, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	var fds []int
	var r response
	reply, err := w.callOpen(&spec, theirs)
	unix.Close(theirs)
	if err == nil {
		r, err = await(ctx, reply, &fds)
		reply.Close()
	}
	n := &Nest{warden: w, name: spec.Name, sock: ours, init: r.Init}
	for i, fd := range fds {
		n.dirs = append(n.dirs, os.NewFile(uintptr(fd), spec.Dirs[i]))
	}
	if err == nil && spec.Disk > 0 && len(fds) != len(spec.Dirs) {
		err = fmt.Errorf("%d directories came back, want %d", len(fds), len(spec.Dirs))
	}
	if err != nil {
		if errors.Is(err, ErrLost) {
			err = fmt.Errorf("%w%s", err, w.said.words())
		}
		return nil, errors.Join(fmt.Errorf("open nest: %w", err), n.Close(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// Dirs returns Spec.Dirs, opened in the nest, where Spec.Disk keeps them from being
// reached by their paths; else none. They are the nest's to close.
func (n *Nest) Dirs() []*os.File { return n.dirs }

// Init returns the process whose death is the nest's.
func (n *Nest) Init() (Init, error) { return identify(n.init) }

// Process is a command that runs.
type Process struct {
	nest  *Nest
	id    uint64
	reply *os.File
}

// Start starts a command in a session of its own. That it couldn't be started comes
// from Wait, as a [StartError]: to wait for that news would cost every command as much
// as the news itself.
func (n *Nest) Start(c Command) (*Process, error) {
	p := &Process{nest: n, id: n.serial.Add(1)}
	var err error
	p.reply, err = call(n.sock, &n.sending, request{Op: opRun, Run: &runRequest{
		ID: p.id, Argv: toBytes(c.Argv), Env: toBytes(c.Env), Path: anyBytes(c.Path), Dir: anyBytes(c.Dir), Online: c.Online, OpenFiles: c.OpenFiles, FileSize: c.FileSize,
	}}, c.Files[:]...)
	if errors.Is(err, unix.E2BIG) {
		err = &StartError{Name: c.Argv[0], Err: err}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Wait returns when the command has ended, or the nest. It is called once.
func (p *Process) Wait() (Status, error) {
	defer p.reply.Close()
	r, err := await(context.Background(), p.reply, nil)
	if err != nil {
		return Status{}, err
	}
	if r.Status == nil {
		return Status{}, fmt.Errorf("%w: a response without a status", ErrLost)
	}
	return *r.Status, nil
}

// Signal sends a signal to every process of the command's group. One that has ended
// gets nothing.
func (p *Process) Signal(ctx context.Context, sig syscall.Signal) error {
	_, err := ask(ctx, p.nest.sock, &p.nest.sending, request{Op: opSignal, Command: p.id, Signal: int(sig)}, nil)
	if errors.Is(err, ErrLost) {
		return nil // and with the nest every process of it
	}
	return err
}

// End kills every process of the nest and returns when none is alive. The nest stays
// usable.
func (n *Nest) End(ctx context.Context) error {
	if _, err := ask(ctx, n.sock, &n.sending, request{Op: opEnd}, nil); err != nil {
		return fmt.Errorf("end processes: %w", err)
	}
	return nil
}

// Socket returns a TCP socket of the nest's network. To bind or connect it is the
// caller's.
func (n *Nest) Socket(ctx context.Context) (int, error) {
	var fds []int
	_, err := ask(ctx, n.sock, &n.sending, request{Op: opSocket}, &fds)
	if err == nil && len(fds) != 1 {
		err = errors.New("none came")
	}
	if err != nil {
		closeAll(fds)
		return -1, fmt.Errorf("socket of the nest: %w", err)
	}
	return fds[0], nil
}

// Alive asks whether the nest is.
func (n *Nest) Alive(ctx context.Context) error {
	_, err := n.Look(ctx, Look{})
	return err
}

// Look looks from inside.
func (n *Nest) Look(ctx context.Context, l Look) (Seen, error) {
	r, err := ask(ctx, n.sock, &n.sending, request{Op: opLook, Look: &l}, nil)
	if err != nil {
		return Seen{}, fmt.Errorf("look: %w", err)
	}
	return r.Seen.seen(), nil
}

// Close kills the nest and returns when every process, mount and control group of it
// is gone. It may be called again when it failed.
func (n *Nest) Close(ctx context.Context) error {
	n.closing.Lock()
	defer n.closing.Unlock()
	if n.closed {
		return nil
	}
	if err := shutdown(n.sock); err != nil {
		return fmt.Errorf("close nest: %w", err)
	}
	// The last word is the end of the stream, and before it what could not be removed.
	_, err := await(ctx, n.sock, nil)
	if ctx.Err() != nil {
		return fmt.Errorf("close nest: %w", err)
	}
	n.closed = true
	n.sock.Close()
	for _, d := range n.dirs {
		d.Close()
	}
	if errors.Is(err, ErrLost) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("close nest: %w", err)
	}
	return nil
}

func shutdown(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	ctlErr := conn.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
	if errors.Is(err, unix.ENOTCONN) {
		err = nil
	}
	return errors.Join(err, ctlErr)
}

var _ io.Writer = (*tail)(nil)
