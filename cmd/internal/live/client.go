// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/runtime"
)

// ErrNotRunning: the trial doesn't run in a process that could be asked.
var ErrNotRunning = errors.New("the trial isn't running")

// Snapshot returns what the process says that works a store's directory; nil where none
// does.
func Snapshot(ctx context.Context, where string) (*progress.Snapshot, error) {
	dir, ok := stores.Directory(where)
	if !ok {
		return nil, nil
	}
	live, err := local.Ask(ctx, dir)
	if errors.Is(err, local.ErrNoOwner) {
		return nil, nil
	}
	return live, err
}

// Log opens a log of a running attempt: as it is now, or followed to the attempt's end.
// [ErrNotRunning] when there is no such attempt.
func Log(ctx context.Context, where, trialID, name string, follow bool) (io.ReadCloser, error) {
	query := url.Values{}
	if follow {
		query.Set("follow", "1")
	}
	resp, err := get(ctx, where, trialID+"/logs/"+name, query, "")
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Find asks for the attempt of a trial that runs now; [ErrNotRunning] when none does.
func Find(ctx context.Context, where, trialID string) (Attempt, error) {
	resp, err := get(ctx, where, trialID, nil, "")
	if err != nil {
		return Attempt{}, err
	}
	defer resp.Body.Close()
	var a Attempt
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return Attempt{}, fmt.Errorf("ask for attempt of trial %s: %w", trialID, err)
	}
	return a, nil
}

// get asks the owner about an attempt.
func get(ctx context.Context, where, path string, query url.Values, upgrade string) (*http.Response, error) {
	dir, ok := stores.Directory(where)
	if !ok {
		return nil, ErrNotRunning
	}
	u := url.URL{Scheme: "http", Host: "tidemill", Path: "/v1/attempts/" + path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	want := http.StatusOK
	if upgrade != "" {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", upgrade)
		want = http.StatusSwitchingProtocols
	}
	resp, err := local.Do(dir, req)
	if errors.Is(err, local.ErrNoOwner) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == want {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, ErrNotRunning
	}
	why, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	return nil, fmt.Errorf("the process that works %s: %s", dir, strings.TrimSpace(string(why)))
}

// StreamError says that a command has no exit code.
type StreamError struct {
	Text       string
	NotStarted bool // there is no such program
	Gone       bool // the sandbox went away under it
}

func (e *StreamError) Error() string { return e.Text }

// Exec runs a command in the sandbox of a running attempt; [ErrNotRunning] when there is
// none. Stdin is read to its end or until the command has ended; a Read that is going on
// then is left to itself.
func Exec(ctx context.Context, where, trialID string, spec Spec, stdin io.Reader, stdout, stderr io.Writer) (runtime.Exit, error) {
	body, err := json.Marshal(spec)
	if err != nil {
		return runtime.Exit{}, err
	}
	resp, err := get(ctx, where, trialID+"/exec", url.Values{"spec": {string(body)}}, protocol)
	if err != nil {
		return runtime.Exit{}, err
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return runtime.Exit{}, errors.Join(errors.New("the connection can't be written to"), resp.Body.Close())
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	s := newSender(conn)
	go s.send(stdin) // nothing can end a Read of somebody's stdin
	defer s.stop()
	exit, err := receive(conn, s, stdout, stderr)
	if err != nil && ctx.Err() != nil {
		return exit, context.Cause(ctx)
	}
	return exit, err
}

// sender sends stdin as the program reads it.
type sender struct {
	f      framer
	more   chan struct{} // holds one while a frame may be sent
	ended  chan struct{}
	ending sync.Once
}

func newSender(w io.Writer) *sender {
	s := &sender{f: framer{w: w}, more: make(chan struct{}, 1), ended: make(chan struct{})}
	s.allow()
	return s
}

func (s *sender) allow() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *sender) stop() { s.ending.Do(func() { close(s.ended) }) }

func (s *sender) send(stdin io.Reader) {
	buf := make([]byte, maxFrame)
	for err := error(nil); stdin != nil && err == nil; {
		var n int
		if n, err = stdin.Read(buf); n == 0 {
			continue
		}
		select {
		case <-s.more:
		case <-s.ended:
			return
		}
		if s.f.write(stdinData, buf[:n]) != nil {
			return // the command has ended
		}
	}
	_ = s.f.write(stdinEnd, nil) // likewise
}

// receive writes a command's output until it ends.
func receive(r io.Reader, s *sender, stdout, stderr io.Writer) (runtime.Exit, error) {
	in := bufio.NewReaderSize(r, maxFrame)
	for {
		kind, body, err := readFrame(in)
		if err != nil {
			return runtime.Exit{}, fmt.Errorf("the process that runs the trial ended the connection: %w", err)
		}
		switch kind {
		case stdinMore:
			s.allow()
		case stdoutData:
			_, err = stdout.Write(body)
		case stderrData:
			_, err = stderr.Write(body)
		case exitFrame:
			var e ending
			if err := json.Unmarshal(body, &e); err != nil {
				return runtime.Exit{}, fmt.Errorf("how the command ended: %w", err)
			}
			if e.Error != "" {
				return runtime.Exit{}, &StreamError{Text: e.Error, NotStarted: e.NotStarted, Gone: e.Gone}
			}
			return runtime.Exit{Code: e.Code, Signal: e.Signal, Exhausted: e.Exhausted}, nil
		}
		if err != nil {
			return runtime.Exit{}, err
		}
	}
}
