// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tidemill/tidemill/runtime"
)

// A command's streams share one connection. Each frame is a byte that says what it is,
// the length of what follows in four bytes, the first the highest, and the bytes.
//
// The client sends one frame of stdin, and the next when the program has read that one:
// so the connection is always read, and a client that goes is noticed although the
// program reads nothing.

// frameKind says what a frame is.
type frameKind byte

const (
	stdinData  frameKind = 'i' // from the client
	stdinEnd   frameKind = 'c' // from the client: there is no more
	stdinMore  frameKind = 'r' // to the client: the program took what there was
	stdoutData frameKind = 'o'
	stderrData frameKind = 'e'
	exitFrame  frameKind = 'x' // the last one: an ending, as JSON
)

// maxFrame is how many bytes a frame has at most.
const maxFrame = 64 << 10

// ending is how a command ended.
type ending struct {
	Code      int    `json:"code"`
	Signal    string `json:"signal,omitempty"`
	Exhausted string `json:"exhausted,omitempty"`
	// Error is set where the command has no exit code of its own.
	Error string `json:"error,omitempty"`
	// NotStarted: there is no such program.
	NotStarted bool `json:"not_started,omitempty"`
	// Gone: the sandbox was closed or lost under it.
	Gone bool `json:"gone,omitempty"`
}

func endingOf(exit runtime.Exit, err error) ending {
	e := ending{Code: exit.Code, Signal: exit.Signal, Exhausted: exit.Exhausted}
	if err != nil {
		_, e.NotStarted = errors.AsType[*runtime.StartError](err)
		e.Gone = errors.Is(err, runtime.ErrClosed) || errors.Is(err, runtime.ErrLost)
		e.Error = err.Error()
	}
	return e
}

// framer writes frames. It is safe for concurrent use.
type framer struct {
	mu sync.Mutex
	w  io.Writer
}

func (f *framer) write(kind frameKind, body []byte) error {
	var head [5]byte
	head[0] = byte(kind)
	binary.BigEndian.PutUint32(head[1:], uint32(len(body)))
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.w.Write(append(head[:], body...)); err != nil {
		return fmt.Errorf("connection: %w", err)
	}
	return nil
}

func (f *framer) end(e ending) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return f.write(exitFrame, body)
}

// stream is a writer of frames of one kind.
type stream struct {
	f    *framer
	kind frameKind
}

func (s stream) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		some := p[n:min(n+maxFrame, len(p))]
		if err := s.f.write(s.kind, some); err != nil {
			return n, err
		}
		n += len(some)
	}
	return len(p), nil
}

// readFrame reads the next frame. The end of the connection between two is io.EOF.
func readFrame(r io.Reader) (frameKind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes, want at most %d", size, maxFrame)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, fmt.Errorf("a frame that was cut off: %w", err)
	}
	return frameKind(head[0]), body, nil
}
