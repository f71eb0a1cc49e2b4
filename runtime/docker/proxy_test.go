// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/client"
)

// verdict is what a proxy does with a request.
type verdict int

const (
	pass    verdict = iota
	stall           // it doesn't reach the engine, and is never answered
	swallow         // it reaches the engine, whose answer never comes
	cut             // the connection is closed
)

// proxy is in front of a real engine and misbehaves on request.
type proxy struct {
	socket  string
	backend string
	l       net.Listener
	wg      sync.WaitGroup

	mu     sync.Mutex
	judge  func(method, path string) verdict
	conns  map[net.Conn]bool
	closed chan struct{}
}

func newProxy(t *testing.T, cli *client.Client) *proxy {
	t.Helper()
	backend, ok := strings.CutPrefix(cli.DaemonHost(), "unix://")
	if !ok {
		t.Skip("the engine isn't on a unix socket")
	}
	p := &proxy{
		socket: filepath.Join(t.TempDir(), "s"), backend: backend, conns: map[net.Conn]bool{}, closed: make(chan struct{}),
	}
	p.set(nil)
	var err error
	if p.l, err = net.Listen("unix", p.socket); err != nil {
		t.Fatal(err)
	}
	p.wg.Go(func() {
		for {
			conn, err := p.l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = p.l.Close()
		close(p.closed)
		p.cutAll()
		p.wg.Wait()
	})
	return p
}

// at makes a runtime use the proxy.
func (p *proxy) at(c *Config) { c.Client = []client.Opt{client.WithHost("unix://" + p.socket)} }

// set chooses what is done with requests; nil passes all.
func (p *proxy) set(judge func(method, path string) verdict) {
	if judge == nil {
		judge = func(string, string) verdict { return pass }
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

// once does something to the first request that matches.
func (p *proxy) once(v verdict, method, part string) {
	var done bool
	p.set(func(m, path string) verdict {
		if done || m != method || !strings.Contains(path, part) {
			return pass
		}
		done = true
		return v
	})
}

// cutAll closes all connections.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) track(c net.Conn) (forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	return func() {
		_ = c.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	}
}

func (p *proxy) serve(conn net.Conn) {
	defer p.track(conn)()
	back, err := net.Dial("unix", p.backend)
	if err != nil {
		return
	}
	defer p.track(back)()
	in, answers := bufio.NewReader(conn), bufio.NewReader(back)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		p.mu.Lock()
		v := p.judge(req.Method, req.URL.Path)
		p.mu.Unlock()
		switch v {
		case cut:
			return
		case stall:
			<-p.closed
			return
		}
		req.URL.Scheme, req.URL.Host = "http", req.Host
		if req.Write(back) != nil {
			return
		}
		resp, err := http.ReadResponse(answers, req)
		if err != nil {
			return
		}
		if v == swallow {
			<-p.closed
			return
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			p.upgraded(conn, back, in, answers, resp)
			return
		}
		err = resp.Write(conn)
		_ = resp.Body.Close()
		if err != nil {
			return
		}
	}
}

// upgraded passes bytes both ways, and ends of them.
func (p *proxy) upgraded(conn, back net.Conn, in, answers io.Reader, resp *http.Response) {
	if resp.Write(conn) != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(back, in)
		_ = back.(*net.UnixConn).CloseWrite()
	})
	_, _ = io.Copy(conn, answers)
	_ = conn.Close()
	wg.Wait()
}
