// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/bundle"
)

// sample is a run with a bit of everything.
func sample() []Trial {
	cost := 0.0123
	var trials []Trial
	add := func(row bundle.PlanRow, c *bundle.Commit) *Trial {
		trials = append(trials, Trial{Row: row, Commit: c, Epoch: 1})
		return &trials[len(trials)-1]
	}
	for i, score := range []float64{1, 1, 0, 0.5} {
		row := rowOf("HumanEval/0", i)
		c := graded(row, score, 1000*(i+1))
		c.Metrics.CostUSD = &cost
		c.Metrics.Usage.PromptTokens = 100
		c.Metrics.Turns = 3
		add(row, c)
	}
	for i := range 4 {
		row := rowOf("HumanEval/1", i)
		switch i {
		case 0:
			c := unscored(row, bundle.Errored, bundle.ReasonProvisionError, bundle.InfraFailure, 20)
			c.Outcome.Stage, c.Outcome.Phase, c.Outcome.Detail = "reset_recipe", "provision", "seed <x> failed"
			c.Attempt = 3
			c.Metrics.CapturedServiceLogs = map[string]int64{"db": 4096, "runner": 512}
			add(row, c)
		case 1:
			c := graded(row, 0, 1500)
			c.Outcome.Status, c.Outcome.TerminationReason = bundle.TimedOut, bundle.ReasonTimeout
			c.Outcome.Flags = []string{"timeout_scored"}
			c.Metrics.CapturedServiceLogs = map[string]int64{"db": 1024}
			add(row, c)
		case 2:
			add(row, nil).Problem = "schema_version 9 is newer than 1"
		case 3:
			add(row, nil)
		}
	}
	for i := range 4 {
		row := rowOf("日本", i)
		tr := add(row, graded(row, 1, 10))
		if i == 0 {
			tr.Epoch = 2 // put back, not done yet
		}
	}
	return trials
}

func TestReportsGolden(t *testing.T) {
	head := header(4)
	head.Meta = func(row bundle.PlanRow) Meta {
		if strings.HasPrefix(row.TaskID, "HumanEval") {
			return Meta{BenchmarkType: "code", Tags: []string{"python"}}
		}
		return Meta{}
	}
	agg, spool := accumulate(t, head, sample())
	for name, text := range spool.text() {
		golden(t, name, text)
		if !json.Valid([]byte(text)) {
			t.Errorf("%s is not JSON", name)
		}
	}
	back, err := Decode(spool[AggregateFile].Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(agg, back); diff != "" {
		t.Errorf("aggregate read back differs:\n%s", diff)
	}
}

func TestNothingCommitted(t *testing.T) {
	var trials []Trial
	for i := range 3 {
		trials = append(trials, Trial{Row: rowOf("a", i)})
	}
	_, spool := accumulate(t, header(3), trials)
	golden(t, "nothing_committed.json", spool[AggregateFile].String())
}

func TestCleanRunHasZeroEnvelope(t *testing.T) {
	row := rowOf("a", 0)
	agg, spool := accumulate(t, header(1), []Trial{{Row: row, Commit: graded(row, 1, 1)}})
	if !agg.Complete || agg.Ended != nil {
		t.Errorf("complete %v, ended %v; want a complete run", agg.Complete, agg.Ended)
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(spool[AggregateFile].Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(string(doc["captured_service_logs"])), "")
	if want := `{"captures":0,"total_bytes":0,"per_service_bytes":{},"entries":[],"sidecar":null}`; got != want {
		t.Errorf("captured_service_logs = %s, want %s", got, want)
	}
}

// The reference's worked case: three surfaces, one roll-up.
func TestServiceLogRollUp(t *testing.T) {
	a, b := rowOf("task-a", 0), rowOf("task-b", 1)
	failed := unscored(a, bundle.Errored, bundle.ReasonProvisionError, bundle.InfraFailure, 1)
	failed.Metrics.CapturedServiceLogs = map[string]int64{"db": 4096, "runner": 512}
	body := graded(b, 0, 1)
	body.Metrics.CapturedServiceLogs = map[string]int64{"db": 1024}
	spool := memSpool{}
	acc, err := NewAccumulator(header(2), spool)
	if err != nil {
		t.Fatal(err)
	}
	reason := "materialise_error"
	steps := []error{
		acc.AddRunCapture(Capture{Source: FromRun, CaptureReason: &reason, Services: map[string]int64{"api": 3584}}),
		acc.Add(Trial{Row: b, Commit: body}),
		acc.Add(Trial{Row: a, Commit: failed}),
	}
	agg, err := acc.Finish()
	if err := errors.Join(append(steps, err)...); err != nil {
		t.Fatal(err)
	}
	got := agg.CapturedServiceLogs
	want := map[string]int64{"db": 5120, "runner": 512, "api": 3584}
	if got.Captures != 3 || got.TotalBytes != 9216 || !cmp.Equal(got.PerServiceBytes, want) {
		t.Errorf("captures %d, bytes %d, %v; want 3, 9216, %v", got.Captures, got.TotalBytes, got.PerServiceBytes, want)
	}
	var order []string
	for _, e := range got.Entries {
		order = append(order, fmt.Sprintf("%s %s %d %s", orElse(e.TaskID, "-"), e.Source, e.TotalBytes, orElse(e.CaptureReason, "-")))
	}
	wantOrder := []string{
		"- shared_stack_materialise 3584 materialise_error",
		"task-a provision_failure 4608 provision_error",
		"task-b trial_body 1024 -",
	}
	if diff := cmp.Diff(wantOrder, order); diff != "" {
		t.Errorf("entries differ:\n%s", diff)
	}
}

// Whatever order the trials of a task come in, every number is the same.
func TestOrderWithinTasksNeverMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trials := randomTrials(t)
		shuffled := slices.Clone(trials)
		seed := rapid.Uint64().Draw(t, "seed")
		rng := rand.New(rand.NewPCG(seed, 1))
		for start := 0; start < len(shuffled); start += 4 {
			part := shuffled[start:min(start+4, len(shuffled))]
			rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		}
		if diff := cmp.Diff(numbers(t, trials), numbers(t, shuffled)); diff != "" {
			t.Fatalf("order changed the numbers:\n%s", diff)
		}
		// Tasks in another order: all but the lists of tasks is the same.
		var back []Trial
		for start := len(trials) - 4; start >= 0; start -= 4 {
			back = append(back, trials[start:start+4]...)
		}
		if diff := cmp.Diff(numbers(t, trials), numbers(t, back)); diff != "" {
			t.Fatalf("order of tasks changed the numbers:\n%s", diff)
		}
	})
}

func randomTrials(t *rapid.T) []Trial {
	var trials []Trial
	for task := range rapid.IntRange(1, 6).Draw(t, "tasks") {
		for i := range 4 {
			row := rowOf(fmt.Sprint("task/", task), i)
			ms := rapid.IntRange(0, 5000).Draw(t, "ms")
			tr := Trial{Row: row, Epoch: 1}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
			case 1:
				tr.Commit = unscored(row, bundle.Errored, bundle.ReasonGraderError, bundle.GraderFailure, ms)
			default:
				tr.Commit = graded(row, rapid.Float64Range(0, 1.2).Draw(t, "score"), ms)
				cost := rapid.Float64Range(0, 3).Draw(t, "cost")
				tr.Commit.Metrics.CostUSD = &cost
				tr.Commit.Metrics.Usage.PromptTokens = rapid.Int64Range(0, 1<<40).Draw(t, "tokens")
			}
			trials = append(trials, tr)
		}
	}
	return trials
}

// numbers is an aggregate without the lists that follow the plan's order, as bytes.
func numbers(t *rapid.T, trials []Trial) string {
	agg, _ := accumulate(t, header(4), trials)
	agg.Tasks, agg.Missing.Trials = nil, nil
	body, err := encode(agg, " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestLongListsGoToSidecars(t *testing.T) {
	var trials []Trial
	for i := range 3 * MaxListed / 2 {
		row := rowOf(fmt.Sprintf("t%05d", i), 0)
		c := graded(row, 0, 1)
		c.Metrics.CapturedServiceLogs = map[string]int64{"db": 1}
		trials = append(trials, Trial{Row: row, Commit: c}, Trial{Row: rowOf(row.TaskID, 1)})
	}
	agg, spool := accumulate(t, header(2), trials)
	lines := func(name string) int { return strings.Count(spool[name].String(), "\n") }
	want := 3 * MaxListed / 2
	if len(agg.Missing.Trials) != MaxListed || *agg.Missing.Sidecar != MissingSidecar || lines(MissingSidecar) != want {
		t.Errorf("missing: %d inline, %d in the sidecar; want %d and %d", len(agg.Missing.Trials), lines(MissingSidecar), MaxListed, want)
	}
	if len(agg.Tasks) != MaxListed || *agg.TasksSidecar != PerTaskFile {
		t.Errorf("%d tasks inline, want %d and a sidecar", len(agg.Tasks), MaxListed)
	}
	if lines(FailuresSidecar) != want || lines(CapturesSidecar) != want {
		t.Errorf("%d failures and %d captures in sidecars, want %d", lines(FailuresSidecar), lines(CapturesSidecar), want)
	}
	var tasks []Task
	if err := json.Unmarshal(spool[PerTaskFile].Bytes(), &tasks); err != nil || len(tasks) != want {
		t.Errorf("%s: %d tasks, %v; want %d", PerTaskFile, len(tasks), err, want)
	}
}

// discard is a spool without a memory.
type discard struct{}

func (discard) Create(string) (io.Writer, error) { return io.Discard, nil }

func TestMemoryDoesNotGrowWithTrials(t *testing.T) {
	heap := func() uint64 {
		goruntime.GC()
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	acc, err := NewAccumulator(header(8), discard{})
	if err != nil {
		t.Fatal(err)
	}
	feed := func(from, to int) {
		for i := from; i < to; i++ {
			row := rowOf(fmt.Sprint("task-", i/8), i%8)
			tr := Trial{Row: row}
			if i%10 > 0 {
				tr.Commit = graded(row, float64(i%3)/2, i%5000)
				tr.Commit.Outcome.TerminationReason = fmt.Sprint("word-", i) // an agent's own
				tr.Commit.Metrics.CapturedServiceLogs = map[string]int64{"db": 5}
			}
			if err := acc.Add(tr); err != nil {
				t.Fatal(err)
			}
		}
	}
	feed(0, 20_000) // lists are full, counts have their width
	before := heap()
	feed(20_000, 100_000)
	if after := heap(); after > before+2<<20 {
		t.Errorf("heap grew from %d to %d bytes over 80,000 trials", before, after)
	}
	agg, err := acc.Finish()
	if err != nil || agg.TotalTrials != 100_000 || agg.Missing.Count != 10_000 {
		t.Fatalf("aggregate = %+v, %v", agg, err)
	}
	if n := len(agg.Outcomes.ByTerminationReason); n > maxWords+1 {
		t.Errorf("%d termination reasons are listed", n)
	}
}

func TestPassKOfRepeats(t *testing.T) {
	var trials []Trial
	for task, passes := range map[string]int{"only": 5} {
		for i := range 8 {
			score := 0.0
			if i < passes {
				score = 1
			}
			row := rowOf(task, i)
			trials = append(trials, Trial{Row: row, Commit: graded(row, score, 1)})
		}
	}
	agg, _ := accumulate(t, header(8), trials)
	var ks []int64
	for _, p := range agg.PassK {
		ks = append(ks, p.K)
	}
	if diff := cmp.Diff([]int64{1, 5, 8, 10}, ks); diff != "" {
		t.Errorf("ks differ:\n%s", diff)
	}
	if *agg.PassAt1Macro != 0.625 || *agg.PassAt5Macro != 1 || agg.PassAt10Macro != nil {
		t.Errorf("pass@1 %v, @5 %v, @10 %v; want 0.625, 1, none", *agg.PassAt1Macro, *agg.PassAt5Macro, agg.PassAt10Macro)
	}
	if p := agg.PassK[2]; *p.PassAt != 1 || *p.PassHat != 0 || p.Tasks != 1 {
		t.Errorf("pass@8 = %+v", p)
	}
}

// A commit whose halves disagree is not scored: no number may come of it.
func TestHalfScoredIsUnscored(t *testing.T) {
	for name, change := range map[string]func(*bundle.Commit){
		"outcome says no": func(c *bundle.Commit) { c.Outcome.Scored = false },
		"grade says no":   func(c *bundle.Commit) { c.Grade.Scored = false },
		"no score":        func(c *bundle.Commit) { c.Grade.Score = nil },
	} {
		row := rowOf("a", 0)
		c := graded(row, 1, 1)
		change(c)
		agg, _ := accumulate(t, header(1), []Trial{{Row: row, Commit: c}})
		if agg.Scored != 0 || agg.Unscored != 1 || agg.Passed != 0 || agg.SuccessRate != nil {
			t.Errorf("%s: scored %d, passed %d, rate %v", name, agg.Scored, agg.Passed, agg.SuccessRate)
		}
	}
}

// full is a spool without room.
type full struct{ name string }

var errFull = errors.New("no room")

func (f full) Create(name string) (io.Writer, error) {
	if name == f.name {
		return nil, errFull
	}
	return io.Discard, nil
}

func TestSpoolErrorsAreReturned(t *testing.T) {
	for _, name := range []string{PerTaskFile, SlicesFile, FailuresFile, AggregateFile, MissingSidecar} {
		acc, err := NewAccumulator(header(1), full{name})
		for i := 0; err == nil && i <= MaxListed; i++ {
			err = acc.Add(Trial{Row: rowOf("a", i)})
		}
		if err == nil {
			_, err = acc.Finish()
		}
		if !errors.Is(err, errFull) {
			t.Errorf("%s can't be created: %v, want %v", name, err, errFull)
		}
	}
}

func TestAttribution(t *testing.T) {
	for _, tc := range []struct {
		outcome bundle.Outcome
		class   string
		sure    bool
	}{
		{bundle.Outcome{Status: bundle.Errored, TerminationReason: bundle.ReasonProvisionError, FailureClass: bundle.InfraFailure}, "provision_failure", true},
		{bundle.Outcome{Status: bundle.Errored, TerminationReason: bundle.ReasonRuntimeLost, FailureClass: bundle.InfraFailure}, "infrastructure", true},
		{bundle.Outcome{Status: bundle.Errored, TerminationReason: bundle.ReasonGraderError, FailureClass: bundle.GraderFailure}, "grader_contract", true},
		{bundle.Outcome{Status: bundle.Errored, TerminationReason: bundle.ReasonSetupError, FailureClass: bundle.TaskFailure}, "task_setup", true},
		{bundle.Outcome{Status: bundle.Errored, TerminationReason: bundle.ReasonRateLimit, FailureClass: bundle.ProviderFailure}, "timeout_or_resource", true},
		{bundle.Outcome{Status: bundle.TimedOut, TerminationReason: bundle.ReasonTimeout, FailureClass: bundle.AgentFailure}, "timeout_or_resource", true},
		{bundle.Outcome{Status: bundle.Completed, TerminationReason: bundle.ReasonResourceExhausted, FailureClass: bundle.AgentFailure}, "timeout_or_resource", true},
		{bundle.Outcome{Status: bundle.Completed, TerminationReason: bundle.ReasonAgentDone, FailureClass: bundle.AgentFailure}, "model_reasoning", false},
		{bundle.Outcome{Status: bundle.Completed, TerminationReason: "max_turns"}, "model_reasoning", false},
	} {
		if class, sure := attribute(tc.outcome); class != tc.class || sure != tc.sure {
			t.Errorf("%+v is %s (%v), want %s (%v)", tc.outcome, class, sure, tc.class, tc.sure)
		}
	}
}

func TestDecodeRefusesNewer(t *testing.T) {
	var newer *bundle.VersionError
	if _, err := Decode([]byte(`{"schema_version": 2}`)); !errors.As(err, &newer) {
		t.Errorf("error = %v, want a version error", err)
	}
	if _, err := Decode([]byte(`[]`)); err == nil {
		t.Error("a list was read as an aggregate")
	}
	if agg, err := Decode([]byte(`{"schema_version": 1, "run_id": "r", "of_tomorrow": 1}`)); err != nil || agg.RunID != "r" {
		t.Errorf("unknown keys: %v, %v", agg, err)
	}
}
