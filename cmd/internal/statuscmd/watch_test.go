// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/queue"
)

func described(done int, running ...progress.Running) *Description {
	d := &Description{
		summary:  summary{RunID: "r", Agent: "mine", Runtime: "subprocess", Trials: 4, Tasks: 4, Done: done, State: "running"},
		Passed:   done,
		ByReason: map[string]int{"agent_done": done},
	}
	if running != nil {
		d.Live = &activity{Slots: 2, Running: running, ETA: float64(100 * done)}
	}
	return d
}

func TestALineForEachChange(t *testing.T) {
	var out bytes.Buffer
	show := showLines(&out)
	one := progress.Running{Run: "r", TaskID: "a", Phase: "agent"}
	later := described(1, one)
	later.Live.ETA = 7 // time goes by
	for _, d := range []*Description{described(0), described(0), described(1, one), later, described(2, one), described(4)} {
		if err := show(d); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4:\n%s", len(lines), out.String())
	}
	var d struct {
		Done int `json:"done"`
		Live struct {
			ETA float64 `json:"eta_s"`
		} `json:"live"`
	}
	if err := json.Unmarshal([]byte(lines[1]), &d); err != nil || d.Done != 1 || d.Live.ETA != 100 {
		t.Errorf("%s: %v", lines[1], err)
	}
}

// What is drawn covers what was drawn before, also where that was longer, and no line
// wraps.
func TestRedraw(t *testing.T) {
	var out bytes.Buffer
	show := redraw(&out)
	long := progress.Running{Run: "r", TaskID: strings.Repeat("very-long-", 40), Phase: "agent", Since: time.Now()}
	if err := show(described(0, long, long)); err != nil {
		t.Fatal(err)
	}
	first := out.String()
	for line := range strings.Lines(first) {
		if n := len([]rune(strings.TrimPrefix(strings.TrimRight(line, "\n"), "\r\x1b[2K"))); n > 80 {
			t.Errorf("%d characters in a line of 80: %q", n, line)
		}
	}
	out.Reset()
	if err := show(described(4)); err != nil {
		t.Fatal(err)
	}
	up := "\x1b[" + strconv.Itoa(strings.Count(first, "\n")) + "A"
	if !strings.HasPrefix(out.String(), up) || !strings.HasSuffix(out.String(), "\x1b[J") {
		t.Errorf("drawn over %d lines with %q, want %q first and the rest erased", strings.Count(first, "\n"), out.String(), up)
	}
}

// A worker that holds back says why, each reason on a line of its own, and can't move the
// cursor with it.
func TestWhyAWorkerTakesNoWork(t *testing.T) {
	d := described(1)
	d.Live = &activity{Slots: 6, Queue: &queue.Stats{Pending: 3, Dead: 1}, Workers: []member{
		{Worker: "vm-1", Slots: 2, Holds: []string{"free disk: 512.0 MiB; stops below 1.0 GiB, goes on from 1.2 GiB", "odd \x1b[2K"}},
		{Worker: "vm-2", Slots: 2, Busy: 2, Running: 1},
		{Worker: "vm-3", Slots: 2, Draining: true},
	}}
	var out bytes.Buffer
	if err := d.Write(&out); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "queue")
	want := `     3 waiting, 0 delayed, 0 in flight, 1 dead
workers   vm-1: 0 of 2 slots busy, 0 with this run
            takes no work: free disk: 512.0 MiB; stops below 1.0 GiB, goes on from 1.2 GiB
            takes no work: odd ^[[2K
          vm-2: 2 of 2 slots busy, 1 with this run
          vm-3: 0 of 2 slots busy, 0 with this run, draining
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
