// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"errors"
	"testing"

	"github.com/tidemill/tidemill/cmd/internal/app"
)

func TestCheckAttempt(t *testing.T) {
	s := newShelf(t)
	s.run("r", 1, 10, "never", "once", "often")
	s.claim("r", "once", 0)
	for range 3 {
		s.claim("r", "often", 0)
	}
	for _, test := range []struct {
		word   string
		number int
		want   string
	}{
		{"never#0", 0, ""},
		{"never#0", 1, "--attempt 1: trial never#0 has not begun"},
		{"once#0", 1, ""},
		{"once#0", 2, "--attempt 2: trial once#0 has only attempt 1"},
		{"often#0", 3, ""},
		{"often#0", 4, "--attempt 4: trial often#0 has the attempts 1 to 3"},
	} {
		trial, err := Find(t.Context(), s.Store, test.word)
		if err != nil {
			t.Fatal(err)
		}
		err = CheckAttempt(t.Context(), s.Store, trial, test.number)
		coded, usage := errors.AsType[*app.CodeError](err)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s, attempt %d: %v", test.word, test.number, err)
		case test.want != "" && (!usage || coded.Code != app.ExitUsage || err.Error() != test.want):
			t.Errorf("%s, attempt %d: %v, want bad input: %s", test.word, test.number, err, test.want)
		}
	}
	if got := attemptWords([]int{5, 1, 2}); got != "the attempts 1, 2, 5" {
		t.Errorf("with gaps: %s", got)
	}
}
