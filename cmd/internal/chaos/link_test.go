// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// link is the network between one worker and one server. It can be cut.
type link struct {
	to string
	l  net.Listener

	mu    sync.Mutex
	state linkState
	open  chan struct{} // closed while bytes may pass
	conns map[net.Conn]struct{}
	wg    sync.WaitGroup
}

type linkState int

const (
	linkUp   linkState = iota
	linkCut            // connections are reset, new ones too
	linkMute           // bytes are held back and nobody is told
)

// newLink listens on a free port of the loopback interface.
func newLink(to string) (*link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &link{to: to, l: l, open: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(k.open)
	k.wg.Go(k.accept)
	return k, nil
}

func (k *link) address() string { return k.l.Addr().String() }

func (k *link) accept() {
	for {
		c, err := k.l.Accept()
		if err != nil {
			return
		}
		k.wg.Go(func() { k.carry(c) })
	}
}

// carry connects one client until either side ends, or the link is cut.
func (k *link) carry(client net.Conn) {
	defer client.Close()
	if !k.add(client) {
		reset(client)
		return
	}
	defer k.drop(client)
	server, err := net.DialTimeout("tcp", k.to, time.Second)
	if err != nil {
		reset(client)
		return
	}
	defer server.Close()
	if !k.add(server) {
		return
	}
	defer k.drop(server)
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if n > 0 {
				<-k.mayPass()
				if _, err := to.Write(buf[:n]); err != nil {
					break
				}
			}
			if err != nil {
				break
			}
		}
		// Either end ends both, as for a proxy that knows no half-closed connections.
		_ = to.Close()
		_ = from.Close()
	}
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

func (k *link) mayPass() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open
}

func (k *link) add(c net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == linkCut {
		return false
	}
	k.conns[c] = struct{}{}
	return true
}

func (k *link) drop(c net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.conns, c)
}

// set changes what the link does from now on. What was held back arrives when it is up
// again.
func (k *link) set(s linkState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wasMute := k.state == linkMute
	k.state = s
	switch {
	case s == linkMute && !wasMute:
		k.open = make(chan struct{})
	case s != linkMute && wasMute:
		close(k.open)
	}
	if s == linkCut {
		for c := range k.conns {
			reset(c)
		}
	}
}

// close ends the link and what goes over it.
func (k *link) close() {
	_ = k.l.Close()
	k.set(linkCut)
	k.wg.Wait()
}

func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

func TestLink(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	k, err := newLink(echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	say := func(c net.Conn, patience time.Duration) error {
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		_, err := c.Read(make([]byte, 1))
		return err
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", k.address())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := dial()
	defer c.Close()
	if err := say(c, time.Minute); err != nil {
		t.Fatalf("up: %v", err)
	}
	k.set(linkMute)
	if err := say(c, 50*time.Millisecond); !timedOut(err) {
		t.Fatalf("mute: %v, want a time-out", err)
	}
	k.set(linkUp)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatalf("what was held back did not arrive: %v", err)
	}
	k.set(linkCut)
	if err := say(c, time.Minute); err == nil {
		t.Fatal("cut: it went through")
	}
	// It is reset as soon as it is accepted, which may be before we hear that it was.
	if late, err := net.Dial("tcp", k.address()); err == nil {
		defer late.Close()
		if err := say(late, time.Minute); err == nil {
			t.Fatal("cut: a new connection went through")
		}
	}
	k.set(linkUp)
	again := dial()
	defer again.Close()
	if err := say(again, time.Minute); err != nil {
		t.Fatalf("up again: %v", err)
	}
}

func timedOut(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}
