// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/internal/redact"
)

func TestValuesAreReplaced(t *testing.T) {
	r := redact.New("hunter22", "hunter22-long", "abc", "")
	for in, want := range map[string]string{
		"":                        "",
		"nothing here":            "nothing here",
		"key=hunter22!":           "key=[redacted]!",
		"hunter22-longer":         "[redacted]er",
		"hunter22hunter22":        "[redacted][redacted]",
		"abc stays: it is short":  "abc stays: it is short",
		"hunter2 is not complete": "hunter2 is not complete",
	} {
		if got := r.String(in); got != want {
			t.Errorf("String(%q): got %q, want %q", in, got, want)
		}
	}
	if got := (*redact.Redactor)(nil).String("hunter22"); got != "hunter22" {
		t.Errorf("nil redactor: got %q", got)
	}
}

// However a text is cut into chunks, the stream says what the whole text says.
func TestStreamEqualsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching(`[ab]{5,9}`), 0, 3).Draw(t, "values")
		text := rapid.StringMatching(`[abc]{0,60}`).Draw(t, "text")
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
