// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/tidemill/tidemill/runtime"
)

// endpoint is a port of a service.
type endpoint struct {
	service string
	port    int
}

// door is an ingress: connections to it go from one goroutine to another.
type door struct {
	name   string
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*door)(nil)

// Accept implements [net.Listener].
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (d *door) Close() error { d.once.Do(func() { close(d.closed) }); return nil }

// Addr implements [net.Listener].
func (d *door) Addr() net.Addr { return &net.UnixAddr{Net: "scripted", Name: d.name} }

func (d *door) dial(ctx context.Context) (net.Conn, error) {
	inner, outer := net.Pipe()
	select {
	case d.conns <- outer:
		return inner, nil
	case <-d.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Ingress implements [runtime.Ingress].
func (s *sandbox) Ingress(ctx context.Context, name string) (runtime.Listener, error) {
	if err := s.usable(ctx); err != nil {
		return runtime.Listener{}, err
	}
	d := &door{name: name, conns: make(chan net.Conn), closed: make(chan struct{})}
	host := name + ".ingress"
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	if _, taken := s.box.doors[host]; taken {
		return runtime.Listener{}, fmt.Errorf("%s has an ingress %q already", s.box.name, name)
	}
	s.box.doors[host] = d
	return runtime.Listener{Listener: d, URL: "http://" + host}, nil
}

// server is what "serve" started: one answer for every request, on a real port of
// the loopback, so that the worker can dial it.
type server struct {
	addr string
	stop func()
}

// Endpoint implements [runtime.Sandbox].
func (s *sandbox) Endpoint(ctx context.Context, service string, port int) (string, error) {
	if err := s.usable(ctx); err != nil {
		return "", err
	}
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	if service == "" {
		service = s.box.spec.Runner
	}
	srv, ok := s.box.servers[endpoint{service, port}]
	if !ok {
		return "", fmt.Errorf("%s: nothing serves port %d of service %q", s.box.name, port, service)
	}
	return srv.addr, nil
}

// networkWords are the instructions that use the network.
var networkWords = words[*call]{
	"fetch": withArgs(1, fetch),
	"serve": func(rest string) (step[*call], error) {
		at, text, err := field(rest)
		if err != nil {
			return nil, err
		}
		port, err := number(at)
		if err != nil {
			return nil, err
		}
		text, err = literal(text)
		return func(ctx context.Context, c *call) error { return serve(ctx, c, port, text) }, err
	},
}

// fetch prints what an ingress answers. Nothing else can be reached.
func fetch(ctx context.Context, c *call, args []string) error {
	u, err := url.Parse(expand(args[0], c.env))
	if err != nil {
		return err
	}
	c.sb.box.mu.Lock()
	d := c.sb.box.doors[u.Hostname()]
	c.sb.box.mu.Unlock()
	if d == nil {
		_, policy := c.situation()
		_, _ = fmt.Fprintf(c.stderr, "%s: no such host under the policy %s\n", u.Host, policy)
		return &ended{runtime.Exit{Code: 7}}
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return d.dial(ctx) },
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(c.stdout, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

func serve(ctx context.Context, c *call, port int, text string) error {
	b := c.sb.box
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, strings.NewReader(text))
	})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil { // nobody would stop it
		_ = srv.Close()
		wg.Wait()
		return context.Cause(b.ctx)
	}
	if old := b.servers[endpoint{c.service, port}]; old != nil {
		old.stop()
	}
	b.servers[endpoint{c.service, port}] = &server{addr: l.Addr().String(), stop: func() { _ = srv.Close(); wg.Wait() }}
	return nil
}
