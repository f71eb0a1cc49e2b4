// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"
)

// LogRecord is one record of a framed log.
type LogRecord struct {
	Stream  LogStream
	At      time.Duration // since the log began, in milliseconds
	Text    []byte        // valid until the next record
	Newline bool          // the program wrote a newline after the text
}

// maxLogLine is a full record with its frame.
const maxLogLine = maxLogText + 64

// ReadLog yields the records of a framed log. An error, which names the line, ends it;
// a log whose last line was cut by a crash ends with [io.ErrUnexpectedEOF].
func ReadLog(r io.Reader) iter.Seq2[LogRecord, error] {
	return func(yield func(LogRecord, error) bool) {
		in := bufio.NewReaderSize(r, maxLogLine)
		for n := 1; ; n++ {
			line, err := in.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				if len(line) == 0 {
					return
				}
				err = io.ErrUnexpectedEOF
			}
			var rec LogRecord
			if err == nil {
				rec, err = parseLogLine(line[:len(line)-1])
			}
			if err != nil {
				yield(LogRecord{}, fmt.Errorf("framed log, line %d: %w", n, err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// CopyLogStream writes one stream of a framed log exactly as the program wrote it, as
// far as it was kept.
func CopyLogStream(w io.Writer, r io.Reader, s LogStream) error {
	out := bufio.NewWriter(w)
	for rec, err := range ReadLog(r) {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		if rec.Stream != s {
			continue
		}
		_, _ = out.Write(rec.Text) // Flush has the error
		if rec.Newline {
			_ = out.WriteByte('\n')
		}
	}
	return out.Flush()
}

func parseLogLine(line []byte) (LogRecord, error) {
	var rec LogRecord
	if len(line) < 3 || line[2] != ' ' {
		return rec, fmt.Errorf("want a stream, a flag and a space, not %.20q", line)
	}
	switch rec.Stream = LogStream(line[0]); rec.Stream {
	case LogStdout, LogStderr, LogMarker:
	default:
		return rec, fmt.Errorf("want o, e or ! for the stream, not %q", line[0])
	}
	switch line[1] {
	case ' ':
		rec.Newline = true
	case '+':
	default:
		return rec, fmt.Errorf("flag %q, want a space or +", line[1])
	}
	at, text, err := parseLogTime(line[3:])
	if err != nil {
		return rec, err
	}
	rec.At, rec.Text = at, text
	if len(text) > maxLogText {
		return rec, fmt.Errorf("%d bytes, want at most %d", len(text), maxLogText)
	}
	return rec, nil
}

// parseLogTime reads seconds with three decimals and the space behind them.
func parseLogTime(b []byte) (time.Duration, []byte, error) {
	end := 0
	for end < len(b) && b[end] != ' ' {
		end++
	}
	num := b[:min(end, 20)]
	bad := fmt.Errorf("time %q, want seconds with three decimals and a space", num)
	dot := len(num) - 4
	if end == len(b) || end > 16 || dot < 1 || num[dot] != '.' || num[0] == '0' && dot > 1 {
		return 0, nil, bad
	}
	sec, err1 := strconv.ParseUint(string(num[:dot]), 10, 33)
	ms, err2 := strconv.ParseUint(string(num[dot+1:]), 10, 16)
	if err1 != nil || err2 != nil {
		return 0, nil, bad
	}
	return time.Duration(sec)*time.Second + time.Duration(ms)*time.Millisecond, b[end+1:], nil
}
