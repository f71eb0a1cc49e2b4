// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/runtime"
)

// Spec is a command to run.
type Spec struct {
	Argv    []string `json:"argv"`
	Dir     string   `json:"dir,omitempty"`
	Service string   `json:"service,omitempty"`
}

const protocol = "tidemill-exec"

var errClientGone = errors.New("the client went away")

// exec takes over the connection and runs a command with its streams on it. The command
// is killed when the client goes.
func (s *Server) exec(w http.ResponseWriter, r *http.Request, a *worker.Attempt) {
	var spec Spec
	if err := json.Unmarshal([]byte(r.URL.Query().Get("spec")), &spec); err != nil || len(spec.Argv) == 0 {
		http.Error(w, "spec: want {argv: […]}", http.StatusBadRequest)
		return
	}
	if r.Header.Get("Upgrade") != protocol {
		http.Error(w, "want an upgrade to "+protocol, http.StatusBadRequest)
		return
	}
	if _, err := a.Sandbox(); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	s.commands.Add(1)
	defer s.commands.Done()
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
	if err != nil {
		return
	}
	serve(context.WithoutCancel(r.Context()), buf.Reader, conn, func(ctx context.Context, cmd runtime.Command) (runtime.Exit, error) {
		return a.Exec(ctx, cmd)
	}, spec)
}

// serve runs a command with its streams in frames on a connection.
func serve(ctx context.Context, in io.Reader, conn io.WriteCloser, run func(context.Context, runtime.Command) (runtime.Exit, error), spec Spec) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &framer{w: conn}
	stdin, feed := io.Pipe()
	taken := make(chan []byte, 1) // what a client may send ahead
	var streams sync.WaitGroup
	streams.Go(func() { cancel(takeFrom(in, taken)) })
	streams.Go(func() {
		defer feed.Close()
		for body := range taken {
			_, _ = feed.Write(body) // a program may end before it has read all of it
			_ = out.write(stdinMore, nil)
		}
	})
	exit, err := run(ctx, runtime.Command{
		Argv: spec.Argv, Dir: spec.Dir, Service: spec.Service,
		Stdin: stdin, Stdout: stream{out, stdoutData}, Stderr: stream{out, stderrData},
	})
	_ = stdin.Close()
	_ = out.end(endingOf(exit, err)) // who isn't there any more doesn't ask
	_ = conn.Close()                 // ends the reading
	streams.Wait()
}

// takeFrom takes a client's frames of stdin until the client goes, and returns why.
func takeFrom(in io.Reader, taken chan<- []byte) error {
	open := true
	end := func() {
		if open {
			close(taken)
		}
		open = false
	}
	defer end()
	for {
		kind, body, err := readFrame(in)
		if err != nil {
			return errClientGone
		}
		switch {
		case kind == stdinEnd:
			end()
		case kind == stdinData && open:
			select {
			case taken <- body:
			default:
				return errors.New("the client sends more than it was asked for")
			}
		}
	}
}
