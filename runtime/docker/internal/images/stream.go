// SPDX-License-Identifier: Apache-2.0

package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// message is one of the JSON values that the engine streams while it pulls or builds.
type message struct {
	Stream string `json:"stream"` // a build's output
	Error  string `json:"error"`
	Detail *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"errorDetail"`
	Aux json.RawMessage `json:"aux"`
}

// streamError is an error that the engine sent inside a stream.
type streamError struct {
	message string
	code    int // of a build's command
}

func (e *streamError) Error() string { return e.message }

// readStream reads to the end and returns the first error that the engine sent. A
// stream that breaks off is an error too.
func readStream(r io.Reader, each func(message)) error {
	var failed error
	dec := json.NewDecoder(r)
	for {
		var m message
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			return failed
		} else if err != nil {
			if failed != nil {
				return failed
			}
			return fmt.Errorf("the engine's answer broke off: %w", err)
		}
		if failed == nil && m.Detail != nil && m.Detail.Message != "" {
			failed = &streamError{m.Detail.Message, m.Detail.Code}
		}
		if failed == nil && m.Error != "" {
			failed = &streamError{message: m.Error}
		}
		each(m)
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	data []byte
	size int
	cut  bool
}

func (t *tail) WriteString(s string) {
	t.data = append(t.data, s...)
	if over := len(t.data) - t.size; over > 0 {
		t.cut = true
		if over > t.size {
			t.data = append([]byte(nil), t.data[over:]...)
		}
	}
}

// Bytes returns the last size bytes.
func (t *tail) Bytes() []byte { return t.data[max(0, len(t.data)-t.size):] }
