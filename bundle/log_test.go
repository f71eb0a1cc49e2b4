// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"pgregory.net/rapid"
)

// ticker is a clock that goes 500 ms with each look at it.
func ticker() func() time.Duration {
	now := -500 * time.Millisecond
	return func() time.Duration {
		now += 500 * time.Millisecond
		return now
	}
}

func TestLogFormat(t *testing.T) {
	var buf bytes.Buffer
	l := bundle.NewLog(&buf, bundle.LogOptions{Now: ticker()})
	out, errs := l.Stdout(), l.Stderr()
	say := func(w io.Writer, text string) {
		if n, err := io.WriteString(w, text); n != len(text) || err != nil {
			t.Errorf("wrote %d of %q, error %v", n, text, err)
		}
	}
	say(out, "compiling\n")
	say(out, "3 of")
	say(out, " 5")
	say(errs, "careful\n\n")
	say(out, "\n+ looks like a frame\r\n")
	say(errs, "")
	say(errs, "prompt> ")
	l.Note("stopped: out of time\nkilled")
	say(out, "last")
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"o  0.000 compiling",
		"o+ 0.500 3 of 5",
		"e  1.500 careful",
		"e  1.500 ",
		"o  2.000 ",
		"o  2.000 + looks like a frame\r",
		"e+ 3.000 prompt> ",
		"!  3.500 stopped: out of time",
		"!  3.500 killed",
		"o+ 4.000 last",
	}, "\n") + "\n"
	if got := buf.String(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	if o, e := l.Bytes(); o != int64(len("compiling\n3 of 5\n+ looks like a frame\r\nlast")) || e != int64(len("careful\n\nprompt> ")) {
		t.Errorf("counted %d and %d bytes", o, e)
	}
	if _, err := io.WriteString(out, "late"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after close: error %v", err)
	}
}

// TestLogIsSeenAtOnce: who follows the log sees a line when it is written.
func TestLogIsSeenAtOnce(t *testing.T) {
	var buf bytes.Buffer
	l := bundle.NewLog(&buf, bundle.LogOptions{Now: ticker()})
	for i, text := range []string{"one\n", "two\nthr", "ee\n"} {
		if _, err := io.WriteString(l.Stdout(), text); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(buf.String(), "\n"); got != i+1 {
			t.Errorf("%d lines after %d writes", got, i+1)
		}
	}
}

// TestLogRoundTrip: any bytes, in any pieces, on both streams, come back exactly, and
// the records are in the order of the writes.
func TestLogRoundTrip(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), 0, 40),
		rapid.Map(rapid.StringMatching(`[ab\n+! oe]{0,20}`), func(s string) []byte { return []byte(s) }),
		rapid.Custom(func(t *rapid.T) []byte {
			return append(bytes.Repeat([]byte("x"), rapid.IntRange(65_500, 131_100).Draw(t, "length")), rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")...)
		}),
	)
	rapid.Check(t, func(t *rapid.T) {
		var buf, both bytes.Buffer
		written := map[bundle.LogStream]*bytes.Buffer{bundle.LogStdout: {}, bundle.LogStderr: {}}
		l := bundle.NewLog(&buf, bundle.LogOptions{Now: ticker()})
		for range rapid.IntRange(0, 12).Draw(t, "writes") {
			p := piece.Draw(t, "piece")
			s, w := bundle.LogStdout, l.Stdout()
			if rapid.Bool().Draw(t, "stderr") {
				s, w = bundle.LogStderr, l.Stderr()
			}
			if n, err := w.Write(p); n != len(p) || err != nil {
				t.Fatalf("wrote %d of %d, error %v", n, len(p), err)
			}
			written[s].Write(p)
			both.Write(p)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for s, want := range written {
			var got bytes.Buffer
			if err := bundle.CopyLogStream(&got, bytes.NewReader(buf.Bytes()), s); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Fatalf("stream %c: got %q, want %q", s, got.Bytes(), want.Bytes())
			}
		}
		var order bytes.Buffer
		var last time.Duration
		for rec, err := range bundle.ReadLog(bytes.NewReader(buf.Bytes())) {
			if err != nil {
				t.Fatal(err)
			}
			if rec.At < last {
				t.Fatalf("time goes back from %v to %v", last, rec.At)
			}
			last = rec.At
			order.Write(rec.Text)
			if rec.Newline {
				order.WriteByte('\n')
			}
		}
		if !bytes.Equal(order.Bytes(), both.Bytes()) {
			t.Fatalf("together: got %q, want %q", order.Bytes(), both.Bytes())
		}
	})
}

// TestLogCap: what is kept is a beginning of what was written, it fits the cap, and what
// is dropped is counted to the byte.
func TestLogCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 300).Draw(t, "cap")
		var buf, out, errs bytes.Buffer
		l := bundle.NewLog(&buf, bundle.LogOptions{Cap: limit, Now: ticker()})
		for range rapid.IntRange(0, 30).Draw(t, "writes") {
			p := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n")), 0, 30).Draw(t, "piece")
			w, all := l.Stdout(), &out
			if rapid.Bool().Draw(t, "stderr") {
				w, all = l.Stderr(), &errs
			}
			if n, err := w.Write(p); n != len(p) || err != nil {
				t.Fatalf("wrote %d of %d, error %v", n, len(p), err)
			}
			all.Write(p)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		text, marker, _ := strings.Cut(buf.String(), "! ")
		if int64(len(text)) > limit {
			t.Fatalf("%d bytes kept, the cap is %d", len(text), limit)
		}
		var dropped int
		for s, all := range map[bundle.LogStream]*bytes.Buffer{bundle.LogStdout: &out, bundle.LogStderr: &errs} {
			var kept bytes.Buffer
			if err := bundle.CopyLogStream(&kept, bytes.NewReader(buf.Bytes()), s); err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(all.Bytes(), kept.Bytes()) {
				t.Fatalf("kept %q of %q", kept.Bytes(), all.Bytes())
			}
			lost := all.Len() - kept.Len()
			dropped += lost
			name := map[bundle.LogStream]string{bundle.LogStdout: "stdout", bundle.LogStderr: "stderr"}[s]
			if want := strings.TrimSpace(strings.Join([]string{name, itoa(lost), "bytes"}, " ")); marker != "" && !strings.Contains(marker, want) {
				t.Fatalf("marker %q, want %q in it", marker, want)
			}
		}
		if (dropped > 0) != (marker != "") {
			t.Fatalf("%d bytes dropped, marker %q", dropped, marker)
		}
	})
}

// TestLogKeepsNotesBeyondTheCap: ours is what people look for when a program floods.
func TestLogKeepsNotesBeyondTheCap(t *testing.T) {
	var buf bytes.Buffer
	l := bundle.NewLog(&buf, bundle.LogOptions{Cap: 20, Now: ticker()})
	if _, err := l.Stdout().Write(bytes.Repeat([]byte("flood\n"), 1_000)); err != nil {
		t.Fatal(err)
	}
	l.Note("stopped")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want := "o  0.000 flood\no+ 0.000 flo"
	want = want[:15] + "!  0.500 stopped\n!  1.000 log full at 20 bytes; dropped: stdout 5994 bytes, stderr 0 bytes\n"
	if buf.String() != want {
		t.Errorf("got:\n%swant:\n%s", buf.String(), want)
	}
}

// TestLogOnABrokenDisk: the program that writes doesn't notice; Close tells.
func TestLogOnABrokenDisk(t *testing.T) {
	broken := errors.New("broken")
	l := bundle.NewLog(writerFunc(func([]byte) (int, error) { return 0, broken }), bundle.LogOptions{})
	for range 3 {
		if n, err := io.WriteString(l.Stdout(), "line\n"); n != 5 || err != nil {
			t.Errorf("wrote %d, error %v", n, err)
		}
	}
	if err := l.Close(); !errors.Is(err, broken) {
		t.Errorf("close: error %v, want %v", err, broken)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestLogFromTwoGoroutines(t *testing.T) {
	var buf bytes.Buffer
	l := bundle.NewLog(&buf, bundle.LogOptions{})
	var wg sync.WaitGroup
	for _, w := range []io.Writer{l.Stdout(), l.Stderr()} {
		wg.Go(func() {
			for range 1_000 {
				if _, err := io.WriteString(w, "a line of some length\nand a part"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		l.Note("meanwhile")
		l.Bytes()
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []bundle.LogStream{bundle.LogStdout, bundle.LogStderr} {
		var got bytes.Buffer
		if err := bundle.CopyLogStream(&got, bytes.NewReader(buf.Bytes()), s); err != nil {
			t.Fatal(err)
		}
		if got.String() != strings.Repeat("a line of some length\nand a part", 1_000) {
			t.Errorf("stream %c came back changed", s)
		}
	}
}
