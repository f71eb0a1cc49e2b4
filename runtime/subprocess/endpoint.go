// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Endpoint returns the port on the loopback, where the sandbox shares that with the
// worker, or else one of the worker's that is passed on to it.
func (s *Sandbox) Endpoint(ctx context.Context, service string, port int) (string, error) {
	if err := s.enter(); err != nil {
		return "", err
	}
	defer s.leave()
	if err := checkService(service); err != nil {
		return "", err
	}
	if port < 1 || port > 65535 {
		return "", fmt.Errorf("port %d: want 1 to 65535", port)
	}
	if !s.isOnline() {
		return s.forward(ctx, port)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}

// isOnline tells whether the sandbox's commands have the host's network now.
func (s *Sandbox) isOnline() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.online
}

// forward listens for a port of the nest's network until the sandbox is closed.
func (s *Sandbox) forward(ctx context.Context, port int) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.forwards[port]; f != nil {
		return f.Addr().String(), nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("endpoint of sandbox %s: %w", s.estate.Name, err)
	}
	f := &forward{Listener: l, sandbox: s, port: port, open: map[net.Conn]bool{}}
	if s.forwards == nil {
		s.forwards = map[int]*forward{}
	}
	s.forwards[port] = f
	f.all.Go(f.serve)
	return l.Addr().String(), nil
}

// forward passes connections on.
type forward struct {
	net.Listener
	sandbox *Sandbox
	port    int
	all     sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func (f *forward) serve() {
	for {
		conn, err := f.Accept()
		if err != nil {
			return
		}
		f.all.Go(func() { f.pass(conn) })
	}
}

func (f *forward) pass(conn net.Conn) {
	defer conn.Close()
	inside, err := f.sandbox.dialInside(f.port)
	if err != nil {
		return // whoever connected sees the end, as with a port where nobody is
	}
	defer inside.Close()
	if !f.enter(conn, inside) {
		return
	}
	defer f.leave(conn, inside)
	var both sync.WaitGroup
	for _, way := range [2][2]net.Conn{{conn, inside}, {inside, conn}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if tcp, ok := way[0].(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
		})
	}
	both.Wait()
}

func (f *forward) enter(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		f.open[c] = true
	}
	return !f.closed
}

func (f *forward) leave(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		delete(f.open, c)
	}
}

// Close ends the connections too.
func (f *forward) Close() error {
	err := f.Listener.Close()
	f.mu.Lock()
	f.closed = true
	for c := range f.open {
		c.Close()
	}
	f.mu.Unlock()
	f.all.Wait()
	return err
}

// dialInside connects to a port of the nest's loopback.
func (s *Sandbox) dialInside(port int) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(s.life, s.cfg.KillTimeout, errBudget)
	defer cancel()
	fd, err := s.nest.Socket(ctx)
	if err != nil {
		return nil, s.lostNest(err)
	}
	f := os.NewFile(uintptr(fd), "endpoint")
	defer f.Close()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: loopback}); err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	return net.FileConn(f)
}

var loopback = [4]byte{127, 0, 0, 1}

// listen listens wherever programs of the sandbox may be.
func (s *Sandbox) listen(ctx context.Context) (net.Listener, error) {
	if s.nest == nil || !s.nestSpec.Offline {
		return new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	}
	for attempt := 0; ; attempt++ {
		inside, err := s.listenInside(ctx)
		if err != nil || !s.nestSpec.AlsoOnline {
			return inside, err
		}
		// The same port on both sides, so that there is one URL.
		outside, err := new(net.ListenConfig).Listen(ctx, "tcp", inside.Addr().String())
		if err == nil {
			return newPair(inside, outside), nil
		}
		if err = errors.Join(err, inside.Close()); attempt == 10 {
			return nil, err
		}
	}
}

// listenInside listens on the nest's loopback.
func (s *Sandbox) listenInside(ctx context.Context) (net.Listener, error) {
	fd, err := s.nest.Socket(ctx)
	if err != nil {
		return nil, s.lostNest(err)
	}
	f := os.NewFile(uintptr(fd), "ingress")
	defer f.Close()
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback})
	if err = errors.Join(err, unix.Listen(fd, unix.SOMAXCONN)); err != nil {
		return nil, err
	}
	return net.FileListener(f)
}

// pair is two listeners of one address in two networks.
type pair struct {
	net.Listener
	other  net.Listener
	came   chan accepted
	closed chan struct{}
	once   sync.Once
	all    sync.WaitGroup
}

type accepted struct {
	conn net.Conn
	err  error
}

func newPair(one, other net.Listener) *pair {
	p := &pair{Listener: one, other: other, came: make(chan accepted), closed: make(chan struct{})}
	for _, l := range []net.Listener{one, other} {
		p.all.Go(func() { p.serve(l) })
	}
	return p
}

func (p *pair) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		select {
		case p.came <- accepted{conn, err}:
		case <-p.closed:
			if conn != nil {
				conn.Close()
			}
			return
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// Accept returns what comes on either side.
func (p *pair) Accept() (net.Conn, error) {
	select {
	case a := <-p.came:
		return a.conn, a.err
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close closes both.
func (p *pair) Close() error {
	p.once.Do(func() { close(p.closed) })
	err := errors.Join(p.Listener.Close(), p.other.Close())
	p.all.Wait()
	return err
}
