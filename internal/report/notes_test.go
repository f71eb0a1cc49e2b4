// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
)

// exited is a graded trial whose agent ended like this.
func exited(row bundle.PlanRow, code int, signal string) *bundle.Commit {
	c := graded(row, 0, 10)
	c.Metrics.AgentExitCode, c.Metrics.AgentSignal = &code, signal
	return c
}

func TestAgentsThatEndBadly(t *testing.T) {
	late := exited(rowOf("b", 1), 137, "SIGKILL")
	late.Outcome.Status, late.Outcome.TerminationReason = bundle.TimedOut, bundle.ReasonTimeout
	regraded := exited(rowOf("a", 2), 3, "")
	regraded.Attempt, regraded.Regraded = 7, &bundle.Regraded{Epoch: 1, Attempt: 2}
	trials := []Trial{
		{Row: rowOf("b", 0), Commit: exited(rowOf("b", 0), 0, "")},
		{Row: rowOf("b", 1), Commit: late},
		{Row: rowOf("b", 2), Commit: exited(rowOf("b", 2), 2, "")},
		{Row: rowOf("a", 0), Commit: graded(rowOf("a", 0), 1, 10)}, // nop has no exit code
		{Row: rowOf("a", 1)}, // missing
		{Row: rowOf("a", 2), Commit: regraded},
		{Row: rowOf("a", 3), Commit: exited(rowOf("a", 3), 139, "SIGSEGV")},
	}
	agg, _ := accumulate(t, header(4), trials)
	if agg.AgentNonzeroExits != 3 || agg.Tasks[0].AgentNonzeroExits != 1 || agg.Tasks[1].AgentNonzeroExits != 2 {
		t.Errorf("%d of the run, %d and %d of the tasks; want 3, 1 and 2",
			agg.AgentNonzeroExits, agg.Tasks[0].AgentNonzeroExits, agg.Tasks[1].AgentNonzeroExits)
	}
	want := &Example{TaskID: "a", TrialIndex: 2, Attempt: 2, Detail: "exit code 3", Log: "runs/demo-1/trials/a/2/2/logs/agent.log"}
	if diff := cmp.Diff(want, agg.AgentNonzeroExitExample); diff != "" {
		t.Errorf("example (-want +got):\n%s", diff)
	}
	text := table(t, agg, TableOptions{Path: func(key string) string { return "results/" + key }})
	line := "note: in 3 of 6 trials the agent ended with a non-zero exit code or by a signal, e.g. a#2: exit code 3; " +
		"see results/runs/demo-1/trials/a/2/2/logs/agent.log\n"
	if !strings.HasSuffix(text, line) {
		t.Errorf("the table doesn't end with %q:\n%s", line, text)
	}
	if text := table(t, accumulateOne(t, exited(rowOf("a", 0), 0, "")), TableOptions{}); strings.Contains(text, "note:") {
		t.Errorf("a note about an agent that ended well:\n%s", text)
	}
	if text := table(t, accumulateOne(t, exited(rowOf("a", 0), 139, "SIGSEGV")), TableOptions{}); !strings.Contains(text, "in 1 of 1 trial the agent") || !strings.Contains(text, "a#0: signal SIGSEGV; see") {
		t.Errorf("nothing is told of a signal:\n%s", text)
	}
}

// What ended before it was done is scored as any other trial, and told.
func TestAgentsThatWereNotDone(t *testing.T) {
	ended := func(row bundle.PlanRow, score float64, reason string) Trial {
		c := graded(row, score, 10)
		c.Outcome.TerminationReason = reason
		return Trial{Row: row, Commit: c}
	}
	agg, _ := accumulate(t, header(2), []Trial{
		ended(rowOf("a", 0), 1, bundle.ReasonAgentDone),
		ended(rowOf("a", 1), 0, bundle.ReasonTimeout),
		ended(rowOf("b", 0), 1, bundle.ReasonTimeout),
		ended(rowOf("b", 1), 0, "max_turns"),
		{Row: rowOf("b", 2), Commit: unscored(rowOf("b", 2), bundle.Errored, bundle.ReasonGraderError, bundle.GraderFailure, 10)},
		{Row: rowOf("b", 3)},
	})
	text := table(t, agg, TableOptions{})
	if want := "\nscored, but the agent was not done: 2 timeout, 1 max_turns\n"; !strings.Contains(text, want) {
		t.Errorf("the table lacks %q:\n%s", want, text)
	}
	if text := table(t, accumulateOne(t, graded(rowOf("a", 0), 1, 10)), TableOptions{}); strings.Contains(text, "not done") {
		t.Errorf("an agent that was done is told of:\n%s", text)
	}
}

func accumulateOne(t *testing.T, c *bundle.Commit) *Aggregate {
	t.Helper()
	agg, _ := accumulate(t, header(1), []Trial{{Row: rowOf(c.TaskID, c.TrialIndex), Commit: c}})
	return agg
}

func TestReasonsAreToldWithAnExample(t *testing.T) {
	var trials []Trial
	add := func(task string, index int, reason string, class bundle.FailureClass, detail string) {
		row := rowOf(task, index)
		c := unscored(row, bundle.Errored, reason, class, 10)
		c.Outcome.Detail = detail
		trials = append(trials, Trial{Row: row, Commit: c})
	}
	add("b/x", 0, "grader_error", bundle.GraderFailure, "reward.txt: \"NaN\" is not finite. Write a number.\nMore.")
	add("b/x", 1, "setup_error", bundle.TaskFailure, "setup command ended with exit code 1")
	add("a", 1, "grader_error", bundle.GraderFailure, "grader ended with exit code 127\nsh: pytest: not found")
	add("a", 2, "grader_error", bundle.GraderFailure, "")
	add("a", 3, "runtime_lost", bundle.InfraFailure, "")
	agg, _ := accumulate(t, header(2), trials)
	want := `without a score: 3 grader_error, 1 runtime_lost, 1 setup_error
  3 grader_error, e.g. a#1: grader ended with exit code 127; see runs/demo-1/trials/a/1/1/logs/grader.log
  1 runtime_lost, e.g. a#3; see runs/demo-1/trials/a/3/1/
  1 setup_error, e.g. b/x#1: setup command ended with exit code 1; see runs/demo-1/trials/b~2Fx/1/1/logs/agent.log
`
	if got := table(t, agg, TableOptions{}); !strings.Contains(got, want) {
		t.Errorf("want\n%sin\n%s", want, got)
	}
}

// An agent may give any number of reasons of any length.
func TestReasonsAreBounded(t *testing.T) {
	var trials []Trial
	for i := range 300 {
		row := rowOf("t", i)
		c := unscored(row, bundle.Errored, fmt.Sprintf("%s%03d", strings.Repeat("why\x1b ", 20), i), bundle.ProviderFailure, 10)
		c.Outcome.Detail = strings.Repeat("very ", 1000) + "long"
		trials = append(trials, Trial{Row: row, Commit: c})
	}
	agg, _ := accumulate(t, header(300), trials)
	if n := len(agg.Outcomes.UnscoredExamples); n != len(agg.Outcomes.UnscoredByReason) || n > maxWords+1 {
		t.Errorf("%d examples of %d reasons", n, len(agg.Outcomes.UnscoredByReason))
	}
	got := table(t, agg, TableOptions{})
	if strings.Count(got, "\n") > 25 || len(got) > 10_000 || strings.Contains(got, "\x1b") || !strings.Contains(got, "… 191 more reasons are in aggregate.json") {
		t.Errorf("%d lines, %d bytes:\n%s", strings.Count(got, "\n"), len(got), got)
	}
}

func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"one":                       "one",
		"one. Two.":                 "one",
		"version 1.2 is old":        "version 1.2 is old",
		"\n first line \nsecond":    "first line",
		"ended.":                    "ended",
		"\x1b[31mred":               "�[31mred",
		strings.Repeat("long ", 99): strings.Repeat("long ", 99)[:maxSentence-1] + "…",
	} {
		if got := firstSentence(text); got != want {
			t.Errorf("firstSentence(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTableOfAMatrix(t *testing.T) {
	head := header(1)
	head.Group, head.Matrix = "demo", map[string]string{"SIZE": "big\nbad", "MODEL": "m1"}
	agg, _ := accumulate(t, head, []Trial{{Row: rowOf("a", 0)}})
	if got, want := table(t, agg, TableOptions{}), "run demo-1  agent oracle  MODEL=m1  SIZE=big�bad\n\n"; !strings.HasPrefix(got, want) {
		t.Errorf("want %q at the beginning of\n%s", want, got)
	}
}

func TestComparison(t *testing.T) {
	var c Comparison
	run := func(id, group string, matrix map[string]string, scores ...float64) {
		head := header(len(scores))
		head.RunID, head.Group, head.Matrix = id, group, matrix
		var trials []Trial
		for i, score := range scores {
			row := rowOf("a", i)
			trials = append(trials, Trial{Row: row, Commit: graded(row, score, 100*(i+1))})
		}
		trials = append(trials, Trial{Row: rowOf("b", 0)})
		agg, _ := accumulate(t, head, trials)
		c.Add(agg)
	}
	run("m-1", "m", map[string]string{"MODEL": "small", "TEMPERATURE": "0"}, 1, 0)
	run("alone", "", nil, 1)
	run("half-1", "half", map[string]string{"MODEL": "small"}, 1) // its other half is not told of
	run("m-2", "m", map[string]string{"MODEL": "日本", "TEMPERATURE": "0.5"})
	run("m-10", "m", map[string]string{"MODEL": "large", "TEMPERATURE": "0"}, 1, 1)
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "comparison.txt", b.String())
}

func TestSecondsHaveSixDecimals(t *testing.T) {
	var trials []Trial
	for i := range 8 {
		row := rowOf(fmt.Sprint("t", i/3), i)
		trials = append(trials, Trial{Row: row, Commit: graded(row, 1, 50+i%3)})
	}
	agg, spool := accumulate(t, header(3), trials)
	if agg.AvgLatencyS != 0.050833 || agg.LatencyP90SMacro != 0.0515 {
		t.Errorf("mean %v, mean of p90 %v", agg.AvgLatencyS, agg.LatencyP90SMacro)
	}
	for name, text := range spool.text() {
		for line := range strings.Lines(text) {
			for _, key := range []string{"avg_latency_s", "_s_macro"} {
				_, after, found := strings.Cut(line, key+`":`)
				number, _, _ := strings.Cut(strings.TrimSpace(after), ",")
				if _, decimals, _ := strings.Cut(number, "."); found && len(decimals) > 6 {
					t.Errorf("%s: %s", name, line)
				}
			}
		}
	}
}
