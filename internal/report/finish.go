// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"maps"

	"github.com/tidemill/tidemill/bundle"
)

// Finish writes what is left of the reports, aggregate.json last, and returns that.
func (a *Accumulator) Finish() (*Aggregate, error) {
	if err := a.closeTask(); err != nil {
		return nil, err
	}
	end := "\n]\n"
	if a.all.tasks == 0 {
		end = "[]\n"
	}
	if _, err := io.WriteString(a.perTask, end); err != nil {
		return nil, fmt.Errorf("write %s: %w", PerTaskFile, err)
	}
	agg := a.aggregate()
	for _, file := range []struct {
		name string
		body any
	}{
		{SlicesFile, a.slices.result()},
		{FailuresFile, a.failures.result()},
		{AggregateFile, agg},
	} {
		if err := writeFile(a.spool, file.name, file.body); err != nil {
			return nil, fmt.Errorf("write %s: %w", file.name, err)
		}
	}
	return agg, nil
}

func (a *Accumulator) aggregate() *Aggregate {
	lat := a.times.latency()
	core := a.all.core()
	agg := &Aggregate{
		SchemaVersion: bundle.SchemaVersion,
		RunID:         a.head.RunID,
		Group:         a.head.Group,
		Matrix:        map[string]string{},
		Name:          a.head.Name,
		Agent:         a.head.Agent,
		PlanDigest:    a.head.PlanDigest,
		Repeats:       a.head.Repeats,
		GeneratedBy:   a.head.GeneratedBy,
		CreatedAt:     a.head.CreatedAt.UTC(),
		Complete:      a.missing.count == 0 && a.epochs.Open == 0,
		Ended:         a.head.Ended,

		Committed: a.commits,
		Scored:    a.all.scored,
		Unscored:  a.commits - a.all.scored,
		Passed:    a.all.passed,
		Missing: Missing{
			Count: a.missing.count, Unreadable: a.broken,
			Trials: a.missing.inline, Sidecar: a.missing.sidecar(),
		},
		Outcomes:                a.outcomes.result(),
		AgentNonzeroExits:       a.all.badExits,
		AgentNonzeroExitExample: a.badExit,

		SuccessRate:       core.SuccessRateMicro,
		SuccessRateCI95:   Wilson95(a.all.passed, a.all.scored),
		SuccessRateStderr: a.passing.stderr(1),
		Bounds:            NewBounds(a.all.passed, a.all.scored, a.all.trials),
		AvgScore:          core.AvgScoreMicro,
		AvgScoreStderr:    a.scoring.stderr(microUnits),
		PassK:             a.all.passK(),
		LatencyP50S:       secs(lat.p50),
		LatencyP90S:       secs(lat.p90),
		LatencyP99S:       secs(lat.p99),
		Core:              core,

		Attempts:            a.attempts,
		Epochs:              a.epochs,
		CapturedServiceLogs: a.captures.result(),
		Tasks:               a.tasks,
	}
	maps.Copy(agg.Matrix, a.head.Matrix)
	if !a.newest.IsZero() {
		at := a.newest.UTC()
		agg.AsOf = &at
	}
	if a.all.tasks > int64(len(a.tasks)) {
		name := PerTaskFile
		agg.TasksSidecar = &name
	}
	return agg
}
