// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "one", "E": "", "D": "${A}$$"}
	get := func(name string) (string, bool, *referenceError) { v, ok := values[name]; return v, ok, nil }
	for _, c := range []struct {
		in, want string
		errs     int
	}{
		{"plain", "plain", 0},
		{"${A}-${A}", "one-one", 0},
		{"${E}|${E:-x}|${U:-x}|${U:-}", "|x|x|", 0},
		{"$$ $${A} $A $(A) $", "$ ${A} $A $(A) $", 0},
		{"${D}", "${A}$$", 0}, // what came out of a variable isn't looked at again
		{"${TIDEMILL_X} ${TIDEMILL_X:-d}", "${TIDEMILL_X} ${TIDEMILL_X:-d}", 0},
		{"$${TIDEMILL_X}", "${TIDEMILL_X}", 0},
		{"${U}", "", 1},
		{"${A", "${A", 1},
		{"${}", "${}", 1},
		{"${A:=x}${U}", "${A:=x}", 2},
	} {
		got, errs := expand(c.in, get)
		if got != c.want || len(errs) != c.errs {
			t.Errorf("expand(%q) = %q with %d errors, want %q with %d", c.in, got, len(errs), c.want, c.errs)
		}
	}
}

// Whatever a text is, its escaped form expands to it without any variable.
func TestEscapeIsInverse(t *testing.T) {
	none := func(name string) (string, bool, *referenceError) { return "", false, nil }
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"$", "{", "}", "A", ":-", "TIDEMILL_", "${TIDEMILL_X}", "x"})).Draw(t, "parts")
		s := strings.Join(parts, "")
		if got, errs := expand(escape(s), none); got != s || len(errs) > 0 {
			t.Fatalf("%q → %q → %q, %v", s, escape(s), got, errs)
		}
	})
}
