// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Server is one NATS server in this process.
type Server struct {
	cfg Config

	mu   sync.Mutex
	port int            // the one that was taken, so that a restart keeps it
	srv  *server.Server // nil while it is down
}

// Start starts a server and returns when it takes connections and JetStream has
// read what is stored.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded NATS: %w", err)
	}
	s := &Server{cfg: cfg}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) options() (*server.Options, error) {
	opts := &server.Options{
		ServerName: "tidemill",
		JetStream:  true,
		StoreDir:   s.cfg.Dir,
		SyncAlways: !s.cfg.RelaxedSync,
		NoSigs:     true,
		DontListen: s.cfg.Listen == "",
	}
	if s.cfg.Listen == "" {
		return opts, nil
	}
	host, port, err := s.cfg.listen()
	if err != nil {
		return nil, err
	}
	opts.Host, opts.Port = host, port
	if s.port != 0 {
		opts.Port = s.port
	}
	return opts, nil
}

func (s *Server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.srv != nil {
		return errors.New("embedded NATS: it is running already")
	}
	opts, err := s.options()
	if err != nil {
		return err
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("embedded NATS: %w", err)
	}
	srv.SetLogger(lines{s.cfg.Log}, false, false)
	started := make(chan struct{})
	go func() {
		defer close(started)
		srv.Start()
	}()
	if err := s.await(ctx, srv); err != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		<-started
		return err
	}
	if addr, ok := srv.Addr().(*net.TCPAddr); ok {
		s.port = addr.Port
	}
	s.srv = srv
	return nil
}

// await waits until the server takes connections, in short steps that let ctx
// end it.
func (s *Server) await(ctx context.Context, srv *server.Server) error {
	for end := time.Now().Add(s.cfg.StartTimeout); !srv.ReadyForConnections(50 * time.Millisecond); {
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("embedded NATS: not up after %v (files in %s, listen address %q)",
				s.cfg.StartTimeout, s.cfg.Dir, s.cfg.Listen)
		}
	}
	if !srv.JetStreamEnabled() {
		return fmt.Errorf("embedded NATS: JetStream did not start on the files in %s", s.cfg.Dir)
	}
	return nil
}

// Connect gives a connection within this process. It reconnects for ever and
// sends nothing late, which is what natsqueue asks for; more options may follow.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	own := []nats.Option{
		nats.InProcessServer(s),
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1),
		nats.ReconnectWait(50 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
	}
	nc, err := nats.Connect("", append(own, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS: connect: %w", err)
	}
	return nc, nil
}

// InProcessConn lets connections find the server that runs now, also after a
// restart.
func (s *Server) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv == nil {
		return nil, errors.New("embedded NATS: it is down")
	}
	return s.srv.InProcessConn()
}

var _ nats.InProcessConnProvider = (*Server)(nil)

// ClientURL is where other processes connect, or "" if it doesn't listen.
func (s *Server) ClientURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.port == 0 {
		return ""
	}
	host, _, _ := s.cfg.listen()
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "nats://" + net.JoinHostPort(host, strconv.Itoa(s.port))
}

// Restart shuts the server down and starts it again on the same files and port.
// Connections find it again by themselves.
func (s *Server) Restart(ctx context.Context) error {
	s.Shutdown()
	return s.start(ctx)
}

// Shutdown ends the server and returns when its files are closed and its port is
// free. It is idempotent.
func (s *Server) Shutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv == nil {
		return
	}
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
	s.srv = nil
}
