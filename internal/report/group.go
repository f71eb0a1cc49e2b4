// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"math/big"
	"slices"
)

// group sums up tasks: all of a run, or those of a slice.
type group struct {
	tasks, trials  int64
	scored, passed int64
	badExits       int64 // of agents
	score          micros
	successes      mean // of tasks
	scores         mean
	byK            map[int64]*passMeans
	latency        mean
	turns          mean
	tools          mean
	stuck          mean
	usage          [usages]big.Int
	avgUsage       [usages]mean
	cost           micros
	avgCost        mean
	priced         bool
	p50, p90, p99  mean // in seconds
}

type passMeans struct{ at, hat mean }

// newGroup makes a group that reports pass@k for the reference's k and for these.
func newGroup(ks ...int64) *group {
	g := &group{byK: map[int64]*passMeans{}}
	for _, k := range append(ks, referenceKs[:]...) {
		if k > 0 {
			g.byK[k] = &passMeans{}
		}
	}
	return g
}

func (g *group) add(t *taskSums) {
	g.tasks++
	g.trials += t.planned
	g.badExits += t.badExits
	if t.scored > 0 {
		g.scored += t.scored
		g.passed += t.passed
		g.score.sum.Add(&g.score.sum, &t.score.sum)
		g.successes.addRatio(big.NewInt(t.passed), t.scored)
		g.scores.addRatio(&t.score.sum, microUnits*t.scored)
	}
	for k, m := range g.byK {
		if at := t.passAt(k); at != nil {
			m.at.add(*at)
			m.hat.add(*t.passHat(k))
		}
	}
	if t.commits == 0 {
		return // no times, tokens or costs; the means are over tasks that have some
	}
	n := t.commits
	g.latency.addRatio(&t.ms, 1000*n)
	g.turns.addRatio(&t.turns, n)
	g.tools.addRatio(&t.tools, n)
	g.stuck.addRatio(big.NewInt(t.stuck), n)
	for i := range g.usage {
		g.usage[i].Add(&g.usage[i], &t.usage[i])
		g.avgUsage[i].addRatio(&t.usage[i], n)
	}
	g.priced = g.priced || t.priced
	g.cost.sum.Add(&g.cost.sum, &t.cost.sum)
	g.avgCost.addRatio(&t.cost.sum, microUnits*n) // not priced counts as 0, as in the reference
	lat := t.times.latency()
	g.p50.addRatio(big.NewInt(lat.p50), 1000*hundredths)
	g.p90.addRatio(big.NewInt(lat.p90), 1000*hundredths)
	g.p99.addRatio(big.NewInt(lat.p99), 1000*hundredths)
}

func (g *group) core() Core {
	c := Core{
		TotalTasks:       g.tasks,
		TotalTrials:      g.trials,
		SuccessRateMacro: g.successes.value(),
		AvgScoreMacro:    g.scores.value(),
		PassAt1Macro:     g.byK[1].at.value(),
		PassAt5Macro:     g.byK[5].at.value(),
		PassAt10Macro:    g.byK[10].at.value(),
		PassHat1Macro:    g.byK[1].hat.value(),
		PassHat5Macro:    g.byK[5].hat.value(),
		PassHat10Macro:   g.byK[10].hat.value(),
		AvgLatencyS:      g.latency.seconds(),
		AvgTurns:         g.turns.orZero(),
		AvgToolCalls:     g.tools.orZero(),
		StuckRate:        g.stuck.orZero(),
		LatencyP50SMacro: g.p50.seconds(),
		LatencyP90SMacro: g.p90.seconds(),
		LatencyP99SMacro: g.p99.seconds(),

		TotalPromptTokens:             clamp(&g.usage[0]),
		TotalCompletionTokens:         clamp(&g.usage[1]),
		TotalReasoningTokens:          clamp(&g.usage[2]),
		TotalCachedTokens:             clamp(&g.usage[3]),
		TotalCacheCreationInputTokens: clamp(&g.usage[4]),
		TotalCacheReadInputTokens:     clamp(&g.usage[5]),
	}
	var avg [usages]float64
	for i := range avg {
		avg[i] = g.avgUsage[i].orZero()
	}
	c.AvgUsage = newAvgUsage(avg)
	if g.scored > 0 {
		rate, score := float64(g.passed)/float64(g.scored), g.score.over(g.scored)
		c.SuccessRateMicro, c.AvgScoreMicro = &rate, &score
	}
	if g.priced {
		total := g.cost.value()
		c.TotalCostUSD, c.AvgCostUSD = &total, g.avgCost.value()
	}
	return c
}

// passK lists pass@k and pass^k by k.
func (g *group) passK() []PassK {
	out := make([]PassK, 0, len(g.byK))
	for _, k := range slices.Sorted(maps.Keys(g.byK)) {
		m := g.byK[k]
		out = append(out, PassK{K: k, PassAt: m.at.value(), PassHat: m.hat.value(), Tasks: m.at.n})
	}
	return out
}
