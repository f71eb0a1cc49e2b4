// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/internal/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestValuesAreReplaced(t *testing.T) {
	r := redact.New("hunter22", "hunter22-long", "abc", "", "-----KEY\nline\n-----\n", "\"q\"\\\n<&>", "a b/c?d")
	for in, want := range map[string]string{
		"":                                      "",
		"nothing here":                          "nothing here",
		"key=hunter22!":                         "key=[redacted]!",
		"hunter22-longer":                       "[redacted]er",
		"hunter22hunter22":                      "[redacted][redacted]",
		"abc stays: it is short":                "abc stays: it is short",
		"hunter2 is not complete":               "hunter2 is not complete",
		"pem: -----KEY\nline\n-----":            "pem: [redacted]",
		"pem: -----KEY\nline\n-----\nend":       "pem: [redacted]end",
		`{"pem":"-----KEY\nline\n-----"}`:       `{"pem":"[redacted]"}`,
		`{"odd":"\"q\"\\\n<&>"}`:                `{"odd":"[redacted]"}`,
		`{"odd":"\"q\"\\\n\u003c\u0026\u003e"}`: `{"odd":"[redacted]"}`,
		"http://x/?key=a+b%2Fc%3Fd":             "http://x/?key=[redacted]",
		"http://x/a%20b%2Fc%3Fd":                "http://x/[redacted]",
	} {
		if got := r.String(in); got != want {
			t.Errorf("String(%q): got %q, want %q", in, got, want)
		}
	}
	if got := (*redact.Redactor)(nil).String("hunter22"); got != "hunter22" {
		t.Errorf("nil redactor: got %q", got)
	}
}

func TestAny(t *testing.T) {
	r := redact.New("hunter22")
	in := map[string]any{"hunter22": 1.5, "a": []any{"hunter22", nil, true, map[string]any{"b": "x hunter22"}}}
	want := map[string]any{"[redacted]": 1.5, "a": []any{"[redacted]", nil, true, map[string]any{"b": "x [redacted]"}}}
	if diff := cmp.Diff(want, r.Any(in)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if in["a"].([]any)[0] != "hunter22" {
		t.Error("the original was changed")
	}
}

// A value that is the beginning of another is not given away when the stream ends, or
// goes on otherwise, in the middle of the longer one.
func TestBeginningOfALongerValue(t *testing.T) {
	r := redact.New("hunter22", "hunter22-and-more")
	for in, want := range map[string]string{
		"hunter22-and":       "[redacted]-and",
		"hunter22-and-then":  "[redacted]-and-then",
		"hunter22-and-more.": "[redacted].",
		"hunter22":           "[redacted]",
		"-hunter2":           "-hunter2",
	} {
		var out bytes.Buffer
		w := r.Writer(&out)
		for i := range len(in) {
			if _, err := w.Write([]byte{in[i]}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // a second Close does nothing
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != want {
			t.Errorf("%q: got %q, want %q", in, out.String(), want)
		}
	}
}

// However a text is cut into chunks, the stream says what the whole text says, and no
// value survives.
func TestStreamEqualsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching(`[ab]{5,9}`), 0, 4).Draw(t, "values")
		pieces := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(append(values, "c")), rapid.StringMatching(`[abc]{1,6}`)), 0, 12)
		text := strings.Join(pieces.Draw(t, "text"), "")
		r := redact.New(values...)
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if whole := r.String(text); out.String() != whole {
			t.Fatalf("stream %q, whole %q (from %q)", out.String(), whole, text)
		}
		for _, v := range values {
			if strings.Contains(out.String(), v) {
				t.Fatalf("%q survived in %q (from %q)", v, out.String(), text)
			}
		}
		if len(values) == 0 && out.String() != text {
			t.Fatalf("got %q, want %q", out.String(), text)
		}
	})
}

// Whatever a value holds, it is found in JSON and in URLs.
func TestSpellings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringN(5, 20, -1).Draw(t, "value")
		r := redact.New(value)
		body, err := json.Marshal(map[string]string{"k": "x" + value + "x"})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{value, string(body), "?k=" + url.QueryEscape(value), "/" + url.PathEscape(value)} {
			if got := r.String(text); !strings.Contains(got, redact.Marker) {
				t.Fatalf("%q: not found in %q", value, text)
			}
		}
	})
}

// Encoders that write ASCII only are the commonest.
func TestASCIIOnlyJSON(t *testing.T) {
	r := redact.New("pässword-\U0001f511-123")
	for _, spelled := range []string{`p\u00e4ssword-\ud83d\udd11-123`, "pässword-\U0001f511-123"} {
		if got := r.String(`{"k": "` + spelled + `"}`); got != `{"k": "`+redact.Marker+`"}` {
			t.Errorf("%s: got %s", spelled, got)
		}
	}
}
