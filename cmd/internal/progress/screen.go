// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"io"
	"sync"

	"golang.org/x/term"
)

// Screen is a terminal with a line at the bottom that is drawn again and again. What is
// written to it appears above that line, so that a log and a bar don't get into each
// other's way.
type Screen struct {
	mu      sync.Mutex
	w       io.Writer
	line    string
	partial bool // the last write did not end its line
}

// NewScreen returns a screen on a terminal.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

// IsTerminal says that a person looks at it.
func (s *Screen) IsTerminal() bool { return true }

const erase = "\r\x1b[2K"

// Write puts text above the line.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	if s.line != "" && !s.partial {
		b.WriteString(erase)
	}
	b.Write(p)
	s.partial = !bytes.HasSuffix(p, []byte("\n"))
	if !s.partial {
		b.WriteString(s.line)
	}
	if _, err := s.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Show draws the line anew; "" removes it.
func (s *Screen) Show(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == line || s.partial {
		s.line = line
		return
	}
	s.line = line
	_, _ = io.WriteString(s.w, erase+line) // nobody left to tell
}

// Width is how many characters a line has.
func (s *Screen) Width() int { return Width(s.w) }

// Width is how many characters a line of a terminal has.
func Width(w io.Writer) int {
	if f := asFile(w); f != nil {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w >= 20 {
			return w
		}
	}
	return 80
}
