// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestReadLogRefuses(t *testing.T) {
	const good = "o  0.000 fine\n"
	for line, want := range map[string]string{
		"":                     "want a stream",
		"o":                    "want a stream",
		"x  0.000 y":           "not 'x'",
		"o- 0.000 y":           "flag '-'",
		"o +0.000 y":           "want a stream",
		"o  0.00 y":            "time",
		"o  0.0000 y":          "time",
		"o  .000 y":            "time",
		"o  00.000 y":          "time",
		"o  1,000 y":           "time",
		"o  -1.000 y":          "time",
		"o  1.000":             "time",
		"o  99999999999.000 y": "time",
		"o  1.+00 y":           "time",
		"o  0.000 " + strings.Repeat("y", 64<<10+1): "at most",
		"o  0.000 " + strings.Repeat("y", 200_000):  "buffer full",
	} {
		n := 0
		var last error
		for _, err := range bundle.ReadLog(strings.NewReader(good + line + "\n" + good)) {
			n++
			last = err
		}
		if n != 2 || last == nil || !strings.Contains(last.Error(), want) || !strings.Contains(last.Error(), "line 2") {
			t.Errorf("%.30q: %d records, error %v; want one record, then an error with %q and the line", line, n, last, want)
		}
	}
}

func TestReadLogCut(t *testing.T) {
	var texts []string
	var last error
	for rec, err := range bundle.ReadLog(strings.NewReader("o  1.002 one\ne+ 2.000 tw")) {
		if last = err; err == nil {
			texts = append(texts, string(rec.Text))
			if rec.At != 1002*time.Millisecond {
				t.Errorf("at %v, want 1.002s", rec.At)
			}
		}
	}
	if len(texts) != 1 || texts[0] != "one" || !errors.Is(last, io.ErrUnexpectedEOF) {
		t.Errorf("records %q, error %v; want one and an unexpected end", texts, last)
	}
	for rec, err := range bundle.ReadLog(strings.NewReader("o  1.002 one\no  1.003 two\n")) {
		if err != nil || string(rec.Text) != "one" {
			t.Errorf("record %q, error %v", rec.Text, err)
		}
		break
	}
}

// FuzzReadLog: what is read as a log is spelled the one way that we write.
func FuzzReadLog(f *testing.F) {
	f.Add([]byte("o  0.012 compiling\ne+ 1.500 warning\n!  2.000 stopped\n"))
	f.Add([]byte("o  0.000 \n"))
	f.Add([]byte("o  0.000"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var at time.Duration
		var again bytes.Buffer
		for rec, err := range bundle.ReadLog(bytes.NewReader(body)) {
			if err != nil {
				return
			}
			// One log for each record, so that none is joined with the next.
			l := bundle.NewLog(&again, bundle.LogOptions{Cap: 1 << 30, Now: func() time.Duration { return at }})
			at = rec.At
			text := bytes.Clone(rec.Text)
			switch rec.Stream {
			case bundle.LogMarker:
				if !rec.Newline {
					return // only within a marker of great length
				}
				l.Note(string(text))
			case bundle.LogStdout, bundle.LogStderr:
				if !rec.Newline && len(text) == 0 {
					return // never written
				}
				if rec.Newline && len(text) == 64<<10 {
					return // written as two records
				}
				w := l.Stdout()
				if rec.Stream == bundle.LogStderr {
					w = l.Stderr()
				}
				if rec.Newline {
					text = append(text, '\n')
				}
				if _, err := w.Write(text); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(body, again.Bytes()) {
			t.Errorf("%q was read, and is written %q", body, again.Bytes())
		}
	})
}
