// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/progress"
)

const socketName = "socket"

// ErrNoOwner: no process works the data directory.
var ErrNoOwner = errors.New("no tidemill process is working there")

// Serve answers clients on the directory's socket until the returned function is
// called.
func (d *Dir) Serve(snapshot func() progress.Snapshot) (stop func(), err error) {
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
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // ends with Close
	}()
	return func() {
		srv.Close()
		<-done
		release()
	}, nil
}

// Ask gets the owner's snapshot of a data directory; [ErrNoOwner] when there is none.
func Ask(ctx context.Context, root string) (*progress.Snapshot, error) {
	addr, release, err := socketAddr(filepath.Join(root, hidden))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoOwner
	}
	if err != nil {
		return nil, err
	}
	defer release()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", addr)
		},
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://tidemill/v1/status", nil)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoOwner
	}
	if err != nil {
		return nil, fmt.Errorf("ask the owner of %s: %w", root, err)
	}
	defer resp.Body.Close()
	var s progress.Snapshot
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return nil, fmt.Errorf("ask the owner of %s: %w", root, err)
	}
	return &s, nil
}

// maxSocketPath is what the kernel takes as the path of a socket.
const maxSocketPath = 100

// socketAddr returns an address for the socket in a directory. A long path is reached
// through the open directory instead.
func socketAddr(dir string) (addr string, release func(), err error) {
	if direct := filepath.Join(dir, socketName); len(direct) <= maxSocketPath {
		return direct, func() {}, nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) + "/" + socketName, func() { f.Close() }, nil
}
