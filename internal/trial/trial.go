// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/redact"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// Names of the phases, as they stand in outcomes and logs.
const (
	PhaseProvision = "provision"
	PhaseSetup     = "setup"
	PhaseAgent     = "agent"
	PhaseGrade     = "grade"
	PhaseCollect   = "collect"
	PhaseTeardown  = "teardown"
)

// failure ends an attempt early.
type failure struct {
	ending    Ending
	reason    string // the agent's own word, where it has one
	phase     string
	stage     string
	detail    string
	permanent bool
	capacity  bool
}

// attempt is the state of one Run.
type attempt struct {
	Config
	started time.Time
	redact  *redact.Redactor
	box     runtime.Sandbox
	step    *manifest.Step

	metrics   bundle.Metrics
	grade     bundle.Grade
	agent     agentEnd
	evidence  runtime.Evidence
	messages  []message
	artifacts artifactList
	flags     []string
	agentLog  *logFile
	gradeLog  *logFile
	problems  []error // files that could not be written
}

// agentEnd is how the agent's phase ended, before grading.
type agentEnd struct {
	timedOut  bool
	exhausted string
	reason    string // its own word
	detail    string
}

// Run runs one attempt. It returns when the sandbox is gone and the bundle's files are
// written. It never fails: what went wrong is in the report. Cancel ctx with one of the
// causes of this package to stop it early.
func Run(ctx context.Context, cfg Config) Report {
	cfg.TeardownTimeout = cmp.Or(cfg.TeardownTimeout, defaultTeardownTimeout)
	secrets := make([]string, 0, len(cfg.Secrets))
	for _, v := range cfg.Secrets {
		secrets = append(secrets, v)
	}
	if cfg.Task == nil {
		cfg.Task = &manifest.Task{ID: cfg.Row.TaskID, Steps: make([]manifest.Step, 1)}
	}
	a := &attempt{Config: cfg, started: time.Now(), redact: redact.New(secrets...)}
	a.metrics.SchemaVersion = bundle.SchemaVersion
	a.grade.PassThreshold = cfg.Run.Run.Grade.PassThreshold

	fail := a.live(ctx)
	ending, outcome := a.conclude(fail)
	a.captureServices(ctx, ending, outcome)
	teardownErr := a.teardown(ctx)
	a.metrics.LatencyTotalS = bundle.NewSeconds(time.Since(a.started))

	if err := a.writeRecords(&outcome); err != nil {
		// Without its records a bundle is worth nothing: that is trouble of ours.
		ending = InfraFailed
		outcome = ending.Outcome("", PhaseCollect, a.redact.String(err.Error()))
		a.grade = bundle.Grade{PassThreshold: a.grade.PassThreshold}
	}
	rep := Report{Ending: ending, Outcome: outcome, Grade: a.grade, Metrics: a.metrics, TeardownErr: teardownErr}
	if fail != nil {
		rep.Permanent, rep.Capacity = fail.permanent, fail.capacity
	}
	return rep
}

// live goes from provisioning to collection. It returns nil when there is a verdict.
func (a *attempt) live(ctx context.Context) *failure {
	if a.Early != nil {
		return a.openFailure(ctx, a.Early.Ending, a.Early.Err)
	}
	if f := a.provision(ctx); f != nil {
		return f
	}
	var fail *failure
	for i := range a.Task.Steps {
		a.step = &a.Task.Steps[i]
		if fail = a.runStep(ctx); fail != nil {
			break
		}
		if last := a.grade.Steps[len(a.grade.Steps)-1].Score; a.step.MinReward != nil && *last < *a.step.MinReward {
			break
		}
	}
	a.closeLogs()
	// What the agent left is evidence, whatever happened.
	if f := a.collect(ctx); f != nil && fail == nil {
		fail = f
	}
	return fail
}

func (a *attempt) runStep(ctx context.Context) *failure {
	if f := a.setup(ctx); f != nil {
		return f
	}
	if f := a.runAgent(ctx); f != nil {
		return f
	}
	if a.agent.exhausted != "" && errors.Is(a.box.Alive(ctx), runtime.ErrLost) {
		// It brought its own box down: that is its result.
		a.addVerdict(map[string]float64{DefaultReward: 0}, DefaultReward,
			"the agent used up its "+a.agent.exhausted+" and its sandbox died of it")
		return nil
	}
	return a.runGrader(ctx)
}

// conclude turns what happened into the outcome.
func (a *attempt) conclude(fail *failure) (Ending, bundle.Outcome) {
	if fail != nil {
		o := fail.ending.Outcome(fail.reason, fail.phase, a.redact.String(fail.detail))
		o.Stage = fail.stage
		o.Flags = append(o.Flags, a.flags...)
		a.grade.Scored, a.grade.BinaryPass, a.grade.Score = false, false, nil
		if a.grade.Reasons == "" {
			a.grade.Reasons = o.Detail
		}
		return fail.ending, o
	}
	a.finishGrade()
	ending := Graded
	switch {
	case a.agent.timedOut:
		ending = AgentTimedOut
	case a.agent.exhausted != "":
		ending = Exhausted
	}
	o := ending.Outcome("", "", a.redact.String(a.agent.detail))
	if ending == Graded {
		o.TerminationReason = cmp.Or(a.agent.reason, o.TerminationReason)
		if !a.grade.BinaryPass {
			o.FailureClass = bundle.AgentFailure
		}
	}
	o.Flags = append(o.Flags, a.flags...)
	return ending, o
}

// begin tells that a phase begins.
func (a *attempt) begin(phase string) {
	a.Log.Debug().Str("phase", phase).Msg("phase begins")
	if a.OnPhase != nil {
		a.OnPhase(phase)
	}
}

func (a *attempt) flag(name string) { a.flags = append(a.flags, name) }

// since returns the time since t as a metric.
func since(t time.Time) *bundle.Seconds {
	s := bundle.NewSeconds(time.Since(t))
	return &s
}

// addSince adds the time since t to a metric that several steps share.
func addSince(m **bundle.Seconds, t time.Time) {
	d := time.Since(t)
	if *m != nil {
		d += time.Duration((*m).Millis()) * time.Millisecond
	}
	s := bundle.NewSeconds(d)
	*m = &s
}
