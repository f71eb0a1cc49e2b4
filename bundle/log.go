// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
)

// A framed log keeps stdout and stderr of a program in one object, in the order in
// which they were written, readable as it is and without the loss of a byte:
//
//	o  0.012 compiling
//	e+ 1.500 warning: 3 of
//	o  1.501 ok
//	e  1.733  10 files skipped
//	!  2.000 stopped: out of time
//
// The first byte is the stream: o is stdout, e is stderr, ! is a marker of ours. The
// second is a space where the program wrote a newline at the end of what follows, and
// "+" where it did not, and the text goes on in the stream's next record. Then come a
// space, the seconds since the log began with three decimals, a space, and the bytes.

// LogStream says where a record of a log comes from.
type LogStream byte

// The streams.
const (
	LogStdout LogStream = 'o'
	LogStderr LogStream = 'e'
	LogMarker LogStream = '!'
)

// maxLogText is how long the bytes of a record are at most.
const maxLogText = 64 << 10

// LogOptions configures a log.
type LogOptions struct {
	// Cap is how large the log may grow before output is dropped; markers come on top.
	// Default 10 MiB.
	Cap int64
	// Now returns the time since the log began, on the monotonic clock. Default: since
	// NewLog.
	Now func() time.Duration
}

// Log writes a framed log. Its streams can be written to from two goroutines, and never
// block or fail for lack of room: what is beyond the cap, or can't be written, is
// counted and dropped. The program under observation must not feel it.
type Log struct {
	w     io.Writer
	limit int64
	room  int64 // what is left of the limit
	now   func() time.Duration

	mu      sync.Mutex
	out     bytes.Buffer // records of the call in progress
	partial []byte       // an unended line of the stream below
	stream  LogStream
	since   time.Duration // when the unended line began
	full    bool
	closed  bool
	err     error // first error of w
	total   map[LogStream]int64
	dropped map[LogStream]int64
}

// NewLog starts a log on w.
func NewLog(w io.Writer, opts LogOptions) *Log {
	if opts.Now == nil {
		start := time.Now()
		opts.Now = func() time.Duration { return time.Since(start) }
	}
	limit := cmp.Or(opts.Cap, 10<<20)
	return &Log{w: w, limit: limit, room: limit, now: opts.Now, total: map[LogStream]int64{}, dropped: map[LogStream]int64{}}
}

// Stdout returns the writer for stdout.
func (l *Log) Stdout() io.Writer { return logWriter{l, LogStdout} }

// Stderr returns the writer for stderr.
func (l *Log) Stderr() io.Writer { return logWriter{l, LogStderr} }

type logWriter struct {
	l *Log
	s LogStream
}

func (w logWriter) Write(p []byte) (int, error) { return w.l.write(w.s, p) }

// Note adds a marker, a record for each line of the text. Markers are kept beyond the
// cap too.
func (l *Log) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.note(text)
		l.flush()
	}
}

// Bytes returns how much was written to each stream, kept or not.
func (l *Log) Bytes() (stdout, stderr int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total[LogStdout], l.total[LogStderr]
}

// Close ends the log, with a marker if output was dropped, and returns the first error
// that the underlying writer gave. It doesn't close that writer. It can be repeated.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.err
	}
	l.endPartial()
	if l.dropped[LogStdout]+l.dropped[LogStderr] > 0 {
		l.note(fmt.Sprintf("log full at %d bytes; dropped: stdout %d bytes, stderr %d bytes",
			l.limit, l.dropped[LogStdout], l.dropped[LogStderr]))
	}
	l.flush()
	l.closed = true
	return l.err
}

func (l *Log) write(s LogStream, p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, fmt.Errorf("framed log: %w", os.ErrClosed)
	}
	l.total[s] += int64(len(p))
	now := l.now()
	for rest := p; len(rest) > 0; {
		if l.full { // whoever goes on for gigabytes shall cost no more than counting
			l.endPartial()
			l.dropped[s] += int64(len(rest))
			break
		}
		if len(l.partial) > 0 && l.stream != s {
			l.endPartial()
		}
		if len(l.partial) == 0 {
			l.stream, l.since = s, now
		}
		n := min(len(rest), maxLogText-len(l.partial))
		if i := bytes.IndexByte(rest[:n], '\n'); i >= 0 {
			l.endLine(rest[:i])
			rest = rest[i+1:]
			continue
		}
		l.partial, rest = append(l.partial, rest[:n]...), rest[n:]
		if len(l.partial) == maxLogText {
			l.endPartial()
		}
	}
	l.flush()
	return len(p), nil
}

// endLine keeps the line that the bytes end.
func (l *Log) endLine(text []byte) {
	if len(l.partial) > 0 {
		text = append(l.partial, text...)
		l.partial = text[:0]
	}
	l.keep(l.stream, l.since, text, true)
}

func (l *Log) endPartial() {
	if len(l.partial) > 0 {
		l.keep(l.stream, l.since, l.partial, false)
		l.partial = l.partial[:0]
	}
}

// keep frames a record of the program's, as much of it as there is room for. From the
// first byte that is dropped on all is, so that what is kept has no holes.
func (l *Log) keep(s LogStream, at time.Duration, text []byte, newline bool) {
	size := int64(len(text))
	if newline {
		size++
	}
	if l.full {
		l.dropped[s] += size
		return
	}
	frame := int64(len(appendLogHead(nil, s, at, newline))) + 1
	if frame+int64(len(text)) <= l.room {
		l.room -= frame + int64(len(text))
		l.frame(s, at, text, newline)
		return
	}
	l.full = true
	fits := max(min(l.room-frame, int64(len(text))), 0)
	l.dropped[s] += size - fits
	if fits > 0 {
		l.frame(s, at, text[:fits], false)
	}
}

func (l *Log) note(text string) {
	l.endPartial()
	at := l.now()
	for line := range bytes.SplitSeq([]byte(text), []byte("\n")) {
		for len(line) > maxLogText {
			l.frame(LogMarker, at, line[:maxLogText], false)
			line = line[maxLogText:]
		}
		l.frame(LogMarker, at, line, true)
	}
}

func (l *Log) frame(s LogStream, at time.Duration, text []byte, newline bool) {
	l.out.Write(appendLogHead(l.out.AvailableBuffer(), s, at, newline))
	l.out.Write(text)
	l.out.WriteByte('\n')
}

// flush hands the records of a call over in one write, so that a reader who follows
// the log sees them at once.
func (l *Log) flush() {
	if l.out.Len() == 0 {
		return
	}
	if l.err == nil {
		_, l.err = l.w.Write(l.out.Bytes())
	}
	l.out.Reset()
	if l.out.Cap() > 4*maxLogText {
		l.out = bytes.Buffer{}
	}
}

func appendLogHead(b []byte, s LogStream, at time.Duration, newline bool) []byte {
	flag := byte('+')
	if newline {
		flag = ' '
	}
	ms := max(at.Milliseconds(), 0)
	b = append(b, byte(s), flag, ' ')
	b = strconv.AppendInt(b, ms/1000, 10)
	b = append(b, '.', byte('0'+ms%1000/100), byte('0'+ms%100/10), byte('0'+ms%10))
	return append(b, ' ')
}
