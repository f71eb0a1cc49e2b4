// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/worker"
)

var update = flag.Bool("update", false, "rewrite testdata/bar.golden")

func TestBarLine(t *testing.T) {
	begin := time.Unix(1000, 0)
	now := begin.Add(90 * time.Second)
	cases := []struct {
		name string
		s    Snapshot
	}{
		{"nothing yet", Snapshot{}},
		{"begun", Snapshot{Since: begin, Runs: map[string]Counts{"r": {Total: 24}}, Running: make([]Running, 2)}},
		{"half", Snapshot{Since: begin, Running: make([]Running, 8), Runs: map[string]Counts{
			"r": {Total: 328, Before: 100, Done: 164, Passed: 50, Failed: 12, Unscored: map[string]int{"infra": 2}},
		}}},
		{"done", Snapshot{Since: begin, Runs: map[string]Counts{"r": {Total: 24, Done: 24, Passed: 12, Failed: 12}}}},
		{"more than planned", Snapshot{Since: begin, Runs: map[string]Counts{"r": {Total: 3, Done: 5, Passed: 5}}}},
		{"large", Snapshot{Since: begin, Running: make([]Running, 640), Uploading: make([]Running, 12), Runs: map[string]Counts{
			"r": {Total: 1_000_000, Done: 123_456, Passed: 100_000, Failed: 23_000, Unscored: map[string]int{"infra": 456}},
		}}},
	}
	var got bytes.Buffer
	for _, width := range []int{20, 40, 80, 120} {
		fmt.Fprintf(&got, "# %d characters\n", width)
		for _, c := range cases {
			line := BarLine(c.s, now, width, false)
			if n := utf8.RuneCountInString(line); n >= width {
				t.Errorf("%s in %d characters: %d; a full line would scroll", c.name, width, n)
			}
			fmt.Fprintf(&got, "%s: %s\n", c.name, line)
			if plain := decolor(BarLine(c.s, now, width, true)); plain != line {
				t.Errorf("%s: in colour it is %q, and without %q", c.name, plain, line)
			}
		}
	}
	golden := filepath.Join("testdata", "bar.golden")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func decolor(text string) string {
	return strings.NewReplacer(green, "", red, "", yellow, "", dim, "", "\x1b[0m", "").Replace(text)
}

func TestColors(t *testing.T) {
	s := Snapshot{Runs: map[string]Counts{"r": {Total: 4, Done: 3, Passed: 1, Failed: 1, Unscored: map[string]int{"infra": 1}}}}
	line := BarLine(s, time.Unix(0, 0), 80, true)
	for _, want := range []string{green + "passed 1", red + "failed 1", yellow + "error 1"} {
		if !strings.Contains(line, want+"\x1b[0m") {
			t.Errorf("%q has no %q", line, want)
		}
	}
}

// terminal plays what a terminal does with lines, carriage returns and the erasing of a
// line.
func terminal(text string) []string {
	lines := []string{""}
	for text != "" {
		last := len(lines) - 1
		switch {
		case strings.HasPrefix(text, "\x1b[2K"):
			lines[last], text = "", text[4:]
		case text[0] == '\r': // always before the line is erased
			text = text[1:]
		case text[0] == '\n':
			lines, text = append(lines, ""), text[1:]
		default:
			lines[last] += text[:1]
			text = text[1:]
		}
	}
	return lines
}

func TestScreenKeepsTheLineAtTheBottom(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out)
	s.Show("1 of 3")
	fmt.Fprintln(s, "a warning")
	s.Show("2 of 3")
	fmt.Fprint(s, "another ")
	s.Show("3 of 3") // in the middle of a line nothing is drawn
	fmt.Fprintln(s, "in two parts")
	if diff := cmp.Diff([]string{"a warning", "another in two parts", "3 of 3"}, terminal(out.String())); diff != "" {
		t.Errorf("the screen shows (-want +got):\n%s", diff)
	}
	s.Show("")
	fmt.Fprintln(s, "the end")
	if diff := cmp.Diff([]string{"a warning", "another in two parts", "the end", ""}, terminal(out.String())); diff != "" {
		t.Errorf("the screen shows (-want +got):\n%s", diff)
	}
}

// A broken grader says the same of each trial: once is enough.
func TestBarTellsEqualMessagesOnce(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	var out bytes.Buffer
	tr := NewTracker(2)
	r := NewReporter(NewScreen(&out), tr)
	var trials sync.WaitGroup
	for i := range 20 {
		trials.Go(func() {
			e := committed("a", "grader")
			e.Outcome.Detail = "grader ended with exit code 127"
			r.Observe(e)
			again := event(worker.Retrying, "b")
			again.TrialID = fmt.Sprintf("%032x", 0xabcdef+i)
			again.Why = fmt.Sprintf("runtime_lost: exec %s: gone; attempt 2 of 3 follows in 1.%ds", again.TrialID, i)
			r.Observe(again)
		})
	}
	trials.Wait()
	other := committed("c", "grader")
	other.Outcome.Detail = "grader ended with exit code 2" // another number, another reason
	r.Observe(other)
	r.Close()
	lines := terminal(out.String())
	slices.Sort(lines) // the first two come in any order
	pauses := regexp.MustCompile(`exec [0-9a-f]{32}: gone; (.*) in 1\.\d+s`)
	got := pauses.ReplaceAllString(strings.Join(lines, "\n"), "exec ID: gone; $1 in 1.Xs")
	want := strings.Join([]string{
		"",
		"19 times more: grader_error: grader ended with exit code 127",
		"19 times more: retrying: runtime_lost: exec ID: gone; attempt 2 of 3 follows in 1.Xs",
		`t#0: grader_error: grader ended with exit code 127`,
		`t#0: grader_error: grader ended with exit code 2`,
		`t#0: retrying: runtime_lost: exec ID: gone; attempt 2 of 3 follows in 1.Xs`,
	}, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the screen shows (-want +got):\n%s", diff)
	}
}

// Where each says something else, that has an end too.
func TestMessagesAreBounded(t *testing.T) {
	var out bytes.Buffer
	var m messages
	for i := range 3 * maxMessages {
		text := fmt.Sprintf("something %d", i)
		m.add(&out, "t", text, text)
	}
	m.flush(&out)
	m.flush(&out) // nothing is told twice
	if n := strings.Count(out.String(), "\n"); n != maxMessages+1 || !strings.HasSuffix(out.String(), "and 200 other messages\n") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

// What a person sees: runs, what went wrong on our side, a bar that goes away.
func TestBarOnAScreen(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	var out bytes.Buffer
	tr := NewTracker(2)
	r := NewReporter(NewScreen(&out), tr)
	tr.Plan("r", 4, 0)
	r.Submitted(Run{RunID: "r", Tasks: 2, Trials: 4})
	r.Submitted(Run{RunID: "old", Tasks: 1, Trials: 9, Done: 3, Continued: true})
	r.Observe(committed("a", "passed"))
	bad := committed("b", "grader")
	bad.TaskID, bad.Outcome.Detail = "evil\x1b[31m", "NaN is\nnot finite"
	r.Observe(bad)
	handedOver := event(worker.Dropped, "c") // as was asked for: nothing to tell
	handedOver.Outcome.Status = bundle.Cancelled
	r.Observe(handedOver)
	lost := event(worker.Dropped, "d")
	lost.Why = "the commit could not be written"
	r.Observe(lost)
	r.Stopping(10 * time.Second)
	r.Close()
	want := []string{
		"run r: 2 tasks, 4 trials",
		"going on with run old: 1 task, 9 trials, 3 of them done",
		`evil^[[31m#0: grader_error: NaN is\nnot finite`,
		`t#0: dropped: the commit could not be written`,
		"stopping: no new trial begins; running ones may go on for 10s, Ctrl-C ends them at once",
		"",
	}
	if diff := cmp.Diff(want, terminal(out.String())); diff != "" {
		t.Errorf("the screen shows (-want +got):\n%s", diff)
	}
}
