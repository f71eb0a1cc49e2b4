// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Warden is the helper process of a worker.
type Warden struct {
	cmd    *exec.Cmd
	sock   *os.File
	hello  hello
	said   *tail
	dead   chan struct{} // closed when the process has ended
	config Config

	sending sync.Mutex
	views   map[*View]int // those that the warden knows
	closing sync.Once
	closed  error
}

// Start starts a warden.
func Start(ctx context.Context, cfg Config) (*Warden, error) {
	cfg.Patience = cmp.Or(cfg.Patience, 10*time.Second)
	if !hooked {
		return nil, ErrNoHook
	}
	if !initSupported {
		return nil, fmt.Errorf("%w: not on this architecture", ErrUnsupported)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	theirFile := os.NewFile(uintptr(theirs), "warden")
	defer theirFile.Close()
	w := &Warden{sock: ours, said: &tail{}, dead: make(chan struct{}), config: cfg}
	w.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{wardenName},
		Env: []string{wardenVar + "=" + wardenName, groupVar + "=" + cfg.Cgroup},
		Dir: "/", Stderr: w.said, ExtraFiles: []*os.File{theirFile},
		SysProcAttr: wardenAttr(),
	}
	if err := w.cmd.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("%w: start the warden: %w", ErrUnsupported, err)
	}
	theirFile.Close() // or else its end is never seen
	go func() {
		_ = w.cmd.Wait()
		close(w.dead)
	}()
	ctx, cancel := context.WithTimeout(ctx, cfg.Patience)
	defer cancel()
	r, err := await(ctx, ours, nil)
	if err == nil && r.Hello == nil {
		err = errors.New("it didn't say hello")
	}
	if err != nil {
		_ = w.cmd.Process.Kill()
		<-w.dead
		ours.Close()
		return nil, fmt.Errorf("%w: start the warden: %w%s", ErrUnsupported, err, w.said.words())
	}
	w.hello = *r.Hello
	return w, nil
}

// wardenAttr puts the warden into a session of its own, so that an interrupt from the
// terminal is the worker's to handle, and, without root, into a user namespace.
func wardenAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	// To execute a program takes the privileges of a user other than root away, unless
	// they are ambient.
	for c := range lastCap() + 1 {
		attr.AmbientCaps = append(attr.AmbientCaps, uintptr(c))
	}
	return attr
}

// Groups returns the directories that a nest of this name and these limits has below
// the control group file system, whether it exists or not.
func (w *Warden) Groups(name string) []string {
	var dirs []string
	for _, parent := range w.hello.Groups {
		dirs = append(dirs, groupDir(parent, name))
	}
	return dirs
}

// Lost is closed when the warden has ended, and all nests with it.
func (w *Warden) Lost() <-chan struct{} { return w.dead }

// Close ends all nests and the warden.
func (w *Warden) Close() error {
	w.closing.Do(func() {
		w.sock.Close()
		timer := time.NewTimer(w.config.Patience)
		defer timer.Stop()
		select {
		case <-w.dead:
		case <-timer.C:
			_ = w.cmd.Process.Kill()
			<-w.dead
			w.closed = fmt.Errorf("the warden of nests had to be killed%s", w.said.words())
		}
	})
	return w.closed
}

// callOpen is a call that takes the view along, if it is a new one.
func (w *Warden) callOpen(spec *Spec, nest int) (*os.File, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs)
	w.sending.Lock()
	defer w.sending.Unlock()
	req := request{Op: opOpen, Spec: spec, ViewID: w.views[spec.View]}
	if req.ViewID == 0 {
		req.ViewID, req.View = len(w.views)+1, spec.View
	}
	if err := send(w.sock, req, theirs, nest); err != nil {
		ours.Close()
		return nil, err
	}
	if w.views == nil {
		w.views = map[*View]int{}
	}
	w.views[spec.View] = req.ViewID
	return ours, nil
}

func send(sock *os.File, req request, fds ...int) error {
	err := sendFrame(fileSend(sock), req, fds)
	switch {
	case errors.Is(err, os.ErrClosed):
		return ErrClosed
	case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
		return ErrLost
	}
	return err
}

// call sends a request, with descriptors that stay the caller's, and returns where the
// response will be. The caller closes it.
func call(sock *os.File, lock *sync.Mutex, req request, fds ...int) (*os.File, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	lock.Lock()
	err = send(sock, req, append([]int{theirs}, fds...)...)
	lock.Unlock()
	unix.Close(theirs)
	if err != nil {
		ours.Close()
		return nil, err
	}
	return ours, nil
}

// await reads one response. That there is none means that the nest is dead.
func await(ctx context.Context, f *os.File, fds *[]int) (response, error) {
	_ = f.SetReadDeadline(time.Time{}) // one that an earlier ctx left
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Now()) })
	defer stop()
	var r response
	got, err := recvFrame(fileRecv(f), &r)
	if fds != nil {
		*fds = got
	} else {
		closeAll(got)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return r, context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET):
		return r, ErrLost
	case err != nil:
		return r, err
	}
	return r, fromWire(r.Error)
}

// ask is a call with its one response.
func ask(ctx context.Context, sock *os.File, lock *sync.Mutex, req request, got *[]int, fds ...int) (response, error) {
	f, err := call(sock, lock, req, fds...)
	if err != nil {
		return response{}, err
	}
	defer f.Close()
	return await(ctx, f, got)
}

// Look looks from outside of any nest: what a nest can't do means nothing if nobody
// can.
func (w *Warden) Look(ctx context.Context, l Look) (Seen, error) {
	r, err := ask(ctx, w.sock, &w.sending, request{Op: opLook, Look: &l}, nil)
	if err != nil {
		return Seen{}, fmt.Errorf("look: %w", err)
	}
	return r.Seen.seen(), nil
}

func (w *wireSeen) seen() Seen {
	errs := func(list []*wireError) []error {
		out := make([]error, len(list))
		for i, e := range list {
			out[i] = fromWire(e)
		}
		return out
	}
	return Seen{Dial: errs(w.Dial), Read: errs(w.Read), Write: errs(w.Write), Entries: w.Entries}
}

// tail keeps the end of what the warden prints, which is nothing unless it crashes.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailMax = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - tailMax; extra > 0 {
		t.buf = slices.Delete(t.buf, 0, extra)
	}
	return len(p), nil
}

func (t *tail) words() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(bytes.TrimSpace(t.buf)) == 0 {
		return ""
	}
	return "; it said: " + strings.TrimSpace(string(t.buf))
}
