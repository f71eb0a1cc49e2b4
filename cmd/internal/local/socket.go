// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/progress"
)

const socketName = "socket"

// ErrNoOwner: no process works the data directory.
var ErrNoOwner = errors.New("no tidemill process is working there")

// answerTimeout bounds how long a client waits, and how long the owner waits for clients
// when it ends.
const answerTimeout = 5 * time.Second

// Route is something else that the owner answers.
type Route struct {
	Pattern string // as of [http.ServeMux]
	Handler http.Handler
}

// Serve answers clients on the directory's socket until the returned function is
// called, which waits for answers that are under way, but not for ever. The context of
// the others ends then.
func (d *Dir) Serve(snapshot func() progress.Snapshot, more ...Route) (stop func(), err error) {
	// Whoever left one is gone: this process has the lock.
	if err := os.Remove(d.path(socketName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	addr, release, err := socketAddr(filepath.Join(d.root, hidden))
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := net.Listen("unix", addr)
	if err != nil {
		release()
		return nil, fmt.Errorf("socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(snapshot()) // the client went away
	})
	for _, r := range more {
		mux.Handle(r.Pattern, r.Handler)
	}
	base, endAll := context.WithCancel(context.Background())
	srv := &http.Server{
		BaseContext: func(net.Listener) context.Context { return base },
		Handler:     mux, ReadHeaderTimeout: answerTimeout,
		ErrorLog: log.New(io.Discard, "", 0), // clients come and go
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // ends with Shutdown
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		defer endAll()
		if srv.Shutdown(ctx) != nil {
			srv.Close()
		}
		<-done
		release()
	}, nil
}

// Ask gets the owner's snapshot of a data directory; [ErrNoOwner] when there is none.
func Ask(ctx context.Context, root string) (*progress.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://tidemill/v1/status", nil)
	if err != nil {
		return nil, err
	}
	resp, err := Do(root, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var s progress.Snapshot
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return nil, fmt.Errorf("ask the owner of %s: %w", root, err)
	}
	return &s, nil
}

// Do sends a request to the owner of a data directory; [ErrNoOwner] when there is none.
// The host in its URL means nothing.
func Do(root string, req *http.Request) (*http.Response, error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return Dial(ctx, root) },
	}
	resp, err := transport.RoundTrip(req)
	if err != nil && !errors.Is(err, ErrNoOwner) {
		err = fmt.Errorf("ask the owner of %s: %w", root, err)
	}
	return resp, err
}

// Dial connects to the owner of a data directory; [ErrNoOwner] when there is none.
func Dial(ctx context.Context, root string) (net.Conn, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	addr, release, err := socketAddr(filepath.Join(abs, hidden))
	if errors.Is(err, errPathTooLong) || noOwner(err) {
		return nil, ErrNoOwner
	}
	if err != nil {
		return nil, err
	}
	defer release()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", addr)
	if noOwner(err) {
		return nil, ErrNoOwner
	}
	return conn, err
}

// noOwner recognizes what is left of an owner that ended, what isn't there at all, and what
// only another user may ask: whoever may read the store reads it as if nobody were there.
func noOwner(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, fs.ErrPermission)
}
