// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config says what a server tells.
type Config struct {
	// Live are the reasons for a restart; none is well.
	Live func() []Reason
	// Ready are the process's own reasons to take no work; none is ready.
	Ready func() []Reason
	// Checks are asked for readiness too. An answer is good for five seconds.
	Checks []Check
	// Status is what is told at /status, as JSON; nil tells nothing.
	Status func() any
}

// Handler answers the questions.
func Handler(c Config) http.Handler {
	var checks []*checker
	for _, check := range c.Checks {
		checks = append(checks, &checker{Check: check})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "live", "stuck", c.Live())
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		// Who asks may go away; the answer is for the next one too.
		reasons := append(c.Live(), c.Ready()...)
		answer(w, "ready", "not ready", append(reasons, askAll(context.WithoutCancel(r.Context()), checks)...))
	})
	if c.Status != nil {
		mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, c.Status()) })
	}
	return mux
}

func answer(w http.ResponseWriter, well, ill string, reasons []Reason) {
	body := struct {
		Status  string   `json:"status"`
		Reasons []Reason `json:"reasons"`
	}{well, reasons}
	code := http.StatusOK
	if len(reasons) > 0 {
		body.Status, code = ill, http.StatusServiceUnavailable
	} else {
		body.Reasons = []Reason{}
	}
	write(w, code, body)
}

func write(w http.ResponseWriter, code int, body any) {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // who asked is gone then
}

// Server serves a [Handler] on an address.
type Server struct {
	addr string
	http *http.Server
	done sync.WaitGroup
	err  error
}

// Serve listens on host:port, where port 0 is a free one, and serves until it is closed.
func Serve(listen string, h http.Handler) (*Server, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("probes: %w", err)
	}
	s := &Server{addr: l.Addr().String(), http: &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}}
	s.done.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.err = err
		}
	})
	return s, nil
}

// Addr is the host:port on which it listens.
func (s *Server) Addr() string { return s.addr }

// Close ends it and every question that is open. It can be repeated.
func (s *Server) Close() error {
	err := s.http.Close()
	s.done.Wait()
	return errors.Join(err, s.err)
}
