// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math/big"

	"github.com/tidemill/tidemill/bundle"
)

// Meta is what a pack says about a task, for slices. Zero means that it says nothing.
type Meta struct {
	BenchmarkType        string
	Complexity           string
	Tags                 []string
	ExpectedFailureModes []string
}

// Task is a row of per_task_metrics.json.
type Task struct {
	TaskID               string   `json:"task_id"`
	BenchmarkType        *string  `json:"benchmark_type"`
	Complexity           *string  `json:"complexity"`
	Tags                 []string `json:"tags"`
	ExpectedFailureModes []string `json:"expected_failure_modes"`

	TotalTrials int64 `json:"total_trials"` // planned
	Committed   int64 `json:"committed"`
	Missing     int64 `json:"missing"`
	Scored      int64 `json:"scored"`
	Successful  int64 `json:"successful_trials"`

	SuccessRate *float64 `json:"success_rate"`
	AvgScore    *float64 `json:"avg_score"`

	PassAt1   *float64 `json:"pass@1"`
	PassAt5   *float64 `json:"pass@5"`
	PassAt10  *float64 `json:"pass@10"`
	PassHat1  *float64 `json:"pass_hat@1"`
	PassHat5  *float64 `json:"pass_hat@5"`
	PassHat10 *float64 `json:"pass_hat@10"`

	AvgLatencyS  float64 `json:"avg_latency_s"`
	AvgTurns     float64 `json:"avg_turns"`
	AvgToolCalls float64 `json:"avg_tool_calls"`
	AvgUsage
	TotalCostUSD *float64 `json:"total_cost_usd"`
	AvgCostUSD   *float64 `json:"avg_cost_usd"`
	LatencyP50S  float64  `json:"latency_p50_s"`
	LatencyP90S  float64  `json:"latency_p90_s"`
	LatencyP99S  float64  `json:"latency_p99_s"`
	StuckRate    float64  `json:"stuck_rate"`

	UnscoredByReason map[string]int64 `json:"unscored_by_reason"`
	// AgentNonzeroExits is how many committed trials have an agent that ended with an
	// exit code other than 0 or by a signal.
	AgentNonzeroExits int64 `json:"agent_nonzero_exits"`
}

// The kinds of tokens, in the order of [bundle.Usage].
const usages = 6

func usageOf(u bundle.Usage) [usages]int64 {
	return [usages]int64{
		u.PromptTokens, u.CompletionTokens, u.ReasoningTokens,
		u.CachedTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens,
	}
}

// taskSums is a task while its trials come in.
type taskSums struct {
	id       string
	planned  int64
	commits  int64
	scored   int64
	passed   int64
	stuck    int64
	badExits int64 // of the agent
	score    micros
	ms       big.Int
	turns    big.Int
	tools    big.Int
	usage    [usages]big.Int
	cost     micros
	priced   bool
	times    Counts
	why      tally // unscored, by reason
}

func (t *taskSums) begin(id string) {
	times := t.times
	times.reset()
	*t = taskSums{id: id, times: times, why: tally{}}
}

func (t *taskSums) add(c *bundle.Commit) {
	t.commits++
	ms := millis(c.Metrics)
	t.times.Add(ms)
	addInt(&t.ms, ms)
	addInt(&t.turns, c.Metrics.Turns)
	addInt(&t.tools, c.Metrics.ToolCalls)
	for i, n := range usageOf(c.Metrics.Usage) {
		addInt(&t.usage[i], n)
	}
	if c.Metrics.StuckDetected {
		t.stuck++
	}
	if _, bad := badExit(c); bad {
		t.badExits++
	}
	if c.Metrics.CostUSD != nil {
		t.priced = true
		t.cost.add(*c.Metrics.CostUSD)
	}
	if !hasScore(c) {
		t.why.add(c.Outcome.TerminationReason)
		return
	}
	t.scored++
	t.score.add(*c.Grade.Score)
	if c.Grade.BinaryPass {
		t.passed++
	}
}

// hasScore says whether a commit has a score that counts: both halves of it say so.
func hasScore(c *bundle.Commit) bool {
	return c.Outcome.Scored && c.Grade.Scored && c.Grade.Score != nil
}

func passed(c *bundle.Commit) bool { return hasScore(c) && c.Grade.BinaryPass }

func addInt(sum *big.Int, n int64) { sum.Add(sum, big.NewInt(n)) }

// row is the finished task.
func (t *taskSums) row(meta Meta) Task {
	lat := t.times.latency()
	row := Task{
		TaskID:               t.id,
		BenchmarkType:        textOrNil(meta.BenchmarkType),
		Complexity:           textOrNil(meta.Complexity),
		Tags:                 append([]string{}, meta.Tags...),
		ExpectedFailureModes: append([]string{}, meta.ExpectedFailureModes...),
		TotalTrials:          t.planned,
		Committed:            t.commits,
		Missing:              t.planned - t.commits,
		Scored:               t.scored,
		Successful:           t.passed,
		PassAt1:              t.passAt(1),
		PassAt5:              t.passAt(5),
		PassAt10:             t.passAt(10),
		PassHat1:             t.passHat(1),
		PassHat5:             t.passHat(5),
		PassHat10:            t.passHat(10),
		LatencyP50S:          secs(lat.p50),
		LatencyP90S:          secs(lat.p90),
		LatencyP99S:          secs(lat.p99),
		UnscoredByReason:     t.why,
		AgentNonzeroExits:    t.badExits,
	}
	if t.scored > 0 {
		rate, score := float64(t.passed)/float64(t.scored), t.score.over(t.scored)
		row.SuccessRate, row.AvgScore = &rate, &score
	}
	if t.commits > 0 {
		n := t.commits
		row.AvgLatencyS = rounded(&t.ms, 1000*n)
		row.AvgTurns = ratio(&t.turns, n)
		row.AvgToolCalls = ratio(&t.tools, n)
		row.StuckRate = float64(t.stuck) / float64(n)
		var avg [usages]float64
		for i := range avg {
			avg[i] = ratio(&t.usage[i], n)
		}
		row.AvgUsage = newAvgUsage(avg)
	}
	if t.priced {
		total, avg := t.cost.value(), t.cost.over(t.commits)
		row.TotalCostUSD, row.AvgCostUSD = &total, &avg
	}
	return row
}

// passAt is pass@k of the task, nil with fewer than k scored trials.
func (t *taskSums) passAt(k int64) *float64 { return valueOrNil(PassAtK(t.scored, t.passed, k)) }

func (t *taskSums) passHat(k int64) *float64 { return valueOrNil(PassHatK(t.scored, t.passed, k)) }

func valueOrNil(v float64, err error) *float64 {
	if err != nil { // fewer than k trials; the other conditions can't be
		return nil
	}
	return &v
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func newAvgUsage(avg [usages]float64) AvgUsage {
	return AvgUsage{avg[0], avg[1], avg[2], avg[3], avg[4], avg[5]}
}
