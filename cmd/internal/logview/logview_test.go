// SPDX-License-Identifier: Apache-2.0

package logview

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
)

// framed makes a log; each text begins with the letter of its stream.
func framed(t *testing.T, texts ...string) string {
	t.Helper()
	var b bytes.Buffer
	now := time.Duration(0)
	log := bundle.NewLog(&b, bundle.LogOptions{Now: func() time.Duration { now += 1500 * time.Millisecond; return now }})
	for _, text := range texts {
		switch body := text[1:]; text[0] {
		case 'o':
			fmt.Fprint(log.Stdout(), body)
		case 'e':
			fmt.Fprint(log.Stderr(), body)
		default:
			log.Note(body)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCopy(t *testing.T) {
	for name, c := range map[string]struct {
		log           string
		color, titles bool
		tail          int
		want          string
	}{
		"streams are told apart": {
			log:  framed(t, "ohello\n", "eoh\n", "!stopped: out of time"),
			want: "    1.500 out  hello\n    3.000 err  oh\n    4.500 ***  stopped: out of time\n",
		},
		"a line of several records is one line": {
			log:  framed(t, "o"+strings.Repeat("x", 70<<10)+"\n", "oy\n"),
			want: "    1.500 out  " + strings.Repeat("x", 70<<10) + "\n    3.000 out  y\n",
		},
		"a line that another stream breaks into": {
			log:  framed(t, "o1 of", "ewarning\n", "o 2\n"),
			want: "    1.500 out  1 of\n    3.000 err  warning\n    4.500 out   2\n",
		},
		"the last line without an end":      {log: framed(t, "oprompt> "), want: "    1.500 out  prompt> \n"},
		"the last lines":                    {log: framed(t, "oa\n", "ob\n", "oc\n", "od\n"), tail: 2, want: "    4.500 out  c\n    6.000 out  d\n"},
		"more last lines than there are":    {log: framed(t, "oa\n"), tail: 5, want: "    1.500 out  a\n"},
		"with its name":                     {log: framed(t, "oa\n", "ob\n"), titles: true, want: "agent:\n    1.500 out  a\n    3.000 out  b\n"},
		"a log that a crash cut off":        {log: framed(t, "oa\n", "ob\n")[:15], want: "    1.500 out  a\n"},
		"what would move the cursor":        {log: framed(t, "o\x1b[2J\x1b]0;title\x07\rpassed\n"), want: "    1.500 out  ^[[2J^[]0;title^G^Mpassed\n"},
		"bytes that are no text, and marks": {log: framed(t, "o\xff\u202eabc\u009b\tü\ufffd\n"), want: "    1.500 out  \\xff\\u202eabc\\u009b\tü\\ufffd\n"},
		"colours":                           {log: framed(t, "oa\n", "eb\n"), color: true, want: dim + "    1.500" + reset + " out  a\n" + dim + "    3.000" + reset + " " + yellow + "err" + reset + "  " + yellow + "b" + reset + "\n"},
		"nothing":                           {},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			p := Printer{W: &got, Color: c.color, Titles: c.titles}
			if err := Copy(&p, "agent", strings.NewReader(c.log), c.tail); err != nil {
				t.Fatal(err)
			}
			if err := p.End(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// As it grows, byte by byte, it is the same.
			if c.tail > 0 {
				return
			}
			got.Reset()
			again := Printer{W: &got, Color: c.color, Titles: c.titles}
			g := Growing{P: &again, Name: "agent"}
			for _, b := range []byte(c.log) {
				if _, err := g.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
			if err := again.End(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.String()); diff != "" {
				t.Errorf("growing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTwoLogsTakeTurns(t *testing.T) {
	var got bytes.Buffer
	p := Printer{W: &got, Titles: true}
	rec := func(text string, newline bool) bundle.LogRecord {
		return bundle.LogRecord{Stream: bundle.LogStdout, Text: []byte(text), Newline: newline}
	}
	for _, err := range []error{
		p.Record("agent", rec("a", false)), p.Record("grader", rec("b", true)), p.Record("grader", rec("c", true)),
		p.Line("--- done"), p.Record("grader", rec("d", true)), p.End(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "agent:\n    0.000 out  a\ngrader:\n    0.000 out  b\n    0.000 out  c\n--- done\ngrader:\n    0.000 out  d\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCopyRaw(t *testing.T) {
	log := framed(t, "oone\n", "e\xff\x00warning", "o", "otwo\n", "!a marker", "othree")
	for name, c := range map[string]struct {
		stream bundle.LogStream
		tail   int
		want   string
	}{
		"stdout":          {bundle.LogStdout, 0, "one\ntwo\nthree"},
		"stderr":          {bundle.LogStderr, 0, "\xff\x00warning"},
		"the end of it":   {bundle.LogStdout, 2, "two\nthree"},
		"the end of more": {bundle.LogStdout, 9, "one\ntwo\nthree"},
	} {
		var got bytes.Buffer
		if err := CopyRaw(&got, strings.NewReader(log), c.stream, c.tail); err != nil || got.String() != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got.String(), err, c.want)
		}
	}
}

func TestCopyLines(t *testing.T) {
	text := "one\n\x1b[2Jtwo\nthree"
	for name, c := range map[string]struct {
		tail    int
		visible bool
		want    string
	}{
		"as it is":             {0, false, text},
		"for a terminal":       {0, true, "one\n^[[2Jtwo\nthree"},
		"the last for a file":  {2, false, "\x1b[2Jtwo\nthree"},
		"the last for persons": {1, true, "three"},
	} {
		var got bytes.Buffer
		if err := CopyLines(&got, iotest.OneByteReader(strings.NewReader(text)), c.tail, c.visible); err != nil || got.String() != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got.String(), err, c.want)
		}
	}
}

func TestWhatIsNoLog(t *testing.T) {
	var got bytes.Buffer
	if err := Copy(&Printer{W: &got}, "agent", strings.NewReader("not a log\n"), 0); err == nil {
		t.Error("no error")
	}
	g := Growing{P: &Printer{W: &got}}
	if _, err := g.Write([]byte("not a log\n")); err == nil {
		t.Error("no error as it grows")
	}
}

func FuzzVisible(f *testing.F) {
	f.Add([]byte("plain"))
	f.Add([]byte("\x1b[31mred\xff\u202e\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, r := range Visible(text) {
			if hidden(r) {
				t.Fatalf("%q still has %q", text, r)
			}
		}
	})
}
