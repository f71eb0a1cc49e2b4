// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/internal/governor"
)

func (d *Description) says(t *testing.T, want string, yes bool) {
	t.Helper()
	var out bytes.Buffer
	if err := d.Write(&out); err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(want).Match(out.Bytes()) != yes {
		t.Errorf("match of %q is not %t in\n%s", want, yes, out.String())
	}
}

// Trials beyond a limit that was lowered are explained as long as there are some.
func TestMoreRunThanTheLimit(t *testing.T) {
	d := described(1, progress.Running{Run: "r", TaskID: "a", Phase: "agent"}, progress.Running{Run: "r", TaskID: "b", Phase: "agent"})
	const line = `(?m)^limits +1 in flight\n +2 run, as before the limit was lowered: they go on to their end`
	d.Limits.MaxInFlight = 1
	d.says(t, line, true)
	d.Limits.MaxInFlight = 2
	d.says(t, `as before the limit was lowered`, false)
	d.Limits.MaxInFlight, d.Live = 1, nil
	d.says(t, `as before the limit was lowered`, false)
}

// Durations are rounded, and a rate that counts what is done once more says so.
func TestWhatAPersonReads(t *testing.T) {
	rate := 1.0
	d := described(3, progress.Running{Run: "r", TaskID: "a", Attempt: 1, Phase: "grade", Since: time.Now().Add(-45404569021)})
	d.SuccessRate, d.Reopened, d.ETA, d.Live.ETA = &rate, 1, 8053.123, 0
	d.Wasted.Attempts, d.Wasted.Seconds = 2, 431.2
	d.Wasted.Lost = map[string]governor.Lost{"w1": {Attempts: 1, Seconds: 45.404569021}}
	for _, line := range []string{
		`rate +100\.0%, with the earlier outcomes of what was put back`,
		` +a#0 attempt 1: grade, began 4[5-9]s ago`,
		`eta +2h14m`,
		`wasted +2 attempts that didn't count, 7m11s`,
		`lost +1 attempt of w1, which died or lost its lease; 45s until they began anew`,
	} {
		d.says(t, `(?m)^`+line+`$`, true)
	}
	d.Reopened = 0
	d.says(t, `(?m)^rate +100\.0%$`, true)
}
