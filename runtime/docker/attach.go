// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
)

// stream is the connection that carries a command's streams.
type stream struct {
	conn net.Conn
	r    *bufio.Reader
}

func (s *stream) Read(p []byte) (int, error) { return s.r.Read(p) }

// closeWrite ends the command's stdin and leaves its output be.
func (s *stream) closeWrite() error {
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// notAskedError says that the engine was never asked, so nothing can have been started.
type notAskedError struct{ error }

func (e *notAskedError) Unwrap() error { return e.error }

// attach starts an exec and takes over its connection. The client's own way of doing so
// waits for the answer without end.
func (e *engine) attach(ctx context.Context, execID string) (*stream, error) {
	const what = "start exec"
	bound, cancel := context.WithTimeoutCause(ctx, e.short, &stalledError{what, e.short})
	defer cancel()
	conn, err := e.Dialer()(bound)
	if err != nil {
		return nil, &notAskedError{e.attachError(ctx, bound, what, err)}
	}
	// A deadline in the past ends reads and writes that are waiting.
	stop := context.AfterFunc(bound, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	s, err := upgrade(conn, e.startURL(execID))
	if !stop() {
		err = errors.Join(err, errors.New("too late"))
	}
	if err != nil {
		_ = conn.Close()
		return nil, e.attachError(ctx, bound, what, err)
	}
	_ = conn.SetDeadline(time.Time{})
	return s, nil
}

func (e *engine) attachError(ctx, bound context.Context, what string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bound.Err() != nil:
		return context.Cause(bound)
	}
	return e.explain(what, err)
}

func (e *engine) startURL(execID string) string {
	host, base := client.DummyHost, ""
	if u, err := client.ParseHostURL(e.DaemonHost()); err == nil && u.Scheme == "tcp" {
		host, base = u.Host, u.Path
	}
	return "http://" + host + strings.TrimSuffix(base, "/") + "/v" + e.ClientVersion() + "/exec/" + execID + "/start"
}

// upgrade sends the request that starts an exec and reads the answer to it.
func upgrade(conn net.Conn, url string) (*stream, error) {
	body := strings.NewReader(`{"Detach":false,"Tty":false}`)
	req, err := http.NewRequest(http.MethodPost, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tcp")
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	s := &stream{conn: conn, r: bufio.NewReaderSize(conn, 32<<10)}
	resp, err := http.ReadResponse(s.r, req)
	if err != nil {
		return nil, err
	}
	// Old engines say 200 and talk on as with 101.
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode == http.StatusOK {
		return s, nil
	}
	defer resp.Body.Close()
	return nil, answerError(resp)
}

// answerError is an error answer, of the classes that the client's own errors have.
func answerError(resp *http.Response) error {
	var body struct {
		Message string `json:"message"`
	}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if json.Unmarshal(data, &body) != nil {
		body.Message = string(data)
	}
	class := map[int]error{
		http.StatusNotFound: cerrdefs.ErrNotFound, http.StatusConflict: cerrdefs.ErrConflict,
		http.StatusBadRequest: cerrdefs.ErrInvalidArgument,
	}[resp.StatusCode]
	if class == nil {
		return fmt.Errorf("%s: %s", resp.Status, body.Message)
	}
	return fmt.Errorf("%w: %s", class, body.Message)
}
