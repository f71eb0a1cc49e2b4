// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/tidemill/tidemill/cmd/internal/app"
)

// maxMessages is how many different messages are told apart. What a trial says of itself
// may be different each time.
const maxMessages = 100

// messages tells a message once and counts its repetitions: when a grader is broken, a
// thousand trials say the same.
type messages struct {
	mu    sync.Mutex
	known map[string]*message
	order []*message
	other int // beyond the limit
}

type message struct {
	text  string
	again int
}

// add tells the message of a trial to w, or counts it. Messages of one kind are equal.
func (m *messages) add(w io.Writer, trial, text, kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch known := m.known[kind]; {
	case known != nil:
		known.again++
	case len(m.known) >= maxMessages:
		m.other++
	default:
		if m.known == nil {
			m.known = map[string]*message{}
		}
		m.known[kind] = &message{text: text}
		m.order = append(m.order, m.known[kind])
		fmt.Fprintf(w, "%s: %s\n", trial, text)
	}
}

// flush tells how often each message came again.
func (m *messages) flush(w io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, msg := range m.order {
		if msg.again > 0 {
			fmt.Fprintf(w, "%s more: %s\n", app.Count(msg.again, "time"), msg.text)
			msg.again = 0
		}
	}
	if m.other > 0 {
		fmt.Fprintf(w, "and %s\n", app.Count(m.other, "other message"))
		m.other = 0
	}
}

// withoutID makes texts equal that differ in the trial that they name.
func withoutID(text, trialID string) string {
	if trialID == "" {
		return text
	}
	return strings.ReplaceAll(text, trialID, "")
}

// withoutNumbers makes texts equal that differ in numbers, such as how long a pause is.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return -1
		}
		return r
	}, text)
}
