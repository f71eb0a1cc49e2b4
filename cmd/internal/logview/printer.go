// SPDX-License-Identifier: Apache-2.0

// Package logview shows framed logs to people: a line of the program's on a line of its
// own, with its time, and the streams told apart.
package logview

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/tidemill/tidemill/bundle"
)

// Printer shows the records of one or several logs. It is safe for concurrent use.
type Printer struct {
	W     io.Writer
	Color bool
	// Titles: a line with a log's name comes before what follows of it. Without it, names
	// are not shown.
	Titles bool

	mu    sync.Mutex
	log   string           // that the last line was of
	begun bool             // something was shown
	open  bundle.LogStream // of a line that has no end yet; 0 without
	err   error
}

const (
	dim    = "\x1b[2m"
	bold   = "\x1b[1m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

// words are what streams are called.
var words = map[bundle.LogStream]string{bundle.LogStdout: "out", bundle.LogStderr: "err", bundle.LogMarker: "***"}

var colors = map[bundle.LogStream]string{bundle.LogStderr: yellow, bundle.LogMarker: bold}

// Record shows a record of a log.
func (p *Printer) Record(log string, r bundle.LogRecord) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if log != p.log || !p.begun {
		p.title(log)
	}
	if p.open != 0 && p.open != r.Stream {
		p.print("\n")
		p.open = 0
	}
	if p.open == 0 {
		p.print(p.colored(dim, fmt.Sprintf("%9.3f", r.At.Seconds())) + " " + p.colored(colors[r.Stream], words[r.Stream]) + "  ")
	}
	p.print(p.colored(colors[r.Stream], Visible(r.Text)))
	p.open = r.Stream
	if r.Newline {
		p.print("\n")
		p.open = 0
	}
	return p.err
}

// Line shows a line of ours between those of the logs.
func (p *Printer) Line(text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLine()
	p.print(text + "\n")
	p.begun = false // the next record says again which log it is of
	return p.err
}

// End ends a line that has no end yet.
func (p *Printer) End() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLine()
	return p.err
}

func (p *Printer) endLine() {
	if p.open != 0 {
		p.print("\n")
		p.open = 0
	}
}

func (p *Printer) title(log string) {
	p.endLine()
	p.log, p.begun = log, true
	if p.Titles {
		p.print(p.colored(bold, log+":") + "\n")
	}
}

func (p *Printer) print(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.W, text)
	}
}

func (p *Printer) colored(color, text string) string {
	if !p.Color || color == "" || text == "" {
		return text
	}
	return color + text + reset
}

// Visible makes text fit for a terminal: what a program under evaluation prints may not
// move the cursor, change colours or titles, or hide what came before. Control
// characters are shown as ^X, bytes that are no text as \xNN; tabs stay.
func Visible(text []byte) string {
	if !bytes.ContainsFunc(text, hidden) {
		return string(text)
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r < 0x20 && r != '\t':
			b.WriteByte('^')
			b.WriteByte(byte(r) + '@')
		case r == 0x7f:
			b.WriteString("^?")
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// hidden are characters that do something to a terminal, or may be bytes that are no
// text.
func hidden(r rune) bool {
	return r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError
}
