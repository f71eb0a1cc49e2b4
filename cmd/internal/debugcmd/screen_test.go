// SPDX-License-Identifier: Apache-2.0

package debugcmd

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/internal/worker"
)

// A phase that is told twice in a row, as collect is of a task with one step, is one.
func TestAPhaseIsShownOnce(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	var out bytes.Buffer
	s := newScreen(&out)
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for _, phase := range []string{"agent", "collect", "collect", "agent", "collect", "collect", "teardown"} {
		s.observe(worker.Event{Kind: worker.Phase, Phase: phase, At: at}, nil)
		at = at.Add(time.Second)
	}
	s.observe(worker.Event{Kind: worker.Committed, At: at}, nil)
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	want := `agent         1.000s
collect       2.000s
agent         1.000s
collect       2.000s
teardown      1.000s
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
