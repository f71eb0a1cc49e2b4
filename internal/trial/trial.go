// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"maps"
	"slices"
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

// attempt is the state of one Run.
type attempt struct {
	Config
	started time.Time
	redact  *redact.Redactor
	hidden  []string // variables of the agent's that hold secrets
	box     runtime.Sandbox
	shown   *Live // the same, for those outside; nil where nobody asked
	dead    bool  // the sandbox is known to be lost
	over    bool  // no further step may begin
	solved  bool  // the oracle's files are in the sandbox
	step    *manifest.Step
	number  int             // of the step, from 0
	used    map[string]bool // files of the step's logs whose content is in a record

	metrics    bundle.Metrics
	grade      bundle.Grade
	agent      agentEnd
	usage      *agentUsage // over all steps, nil when nothing is known
	evidence   runtime.Evidence
	last       string // the reward that is the score of the step graded last
	messages   []message
	artifacts  artifactList
	room       runtime.CopyLimits // what is left of the limits of collection
	graderRoom runtime.CopyLimits // the same for the grader's own files
	flags      []string
	carried    *carriedTrajectory // of Earlier, once it is read
	agentLog   *logFile
	gradeLog   *logFile
}

// Run runs one attempt. It returns when the sandbox is gone and the bundle's files are
// written. It never fails: what went wrong is in the report. Cancel ctx with one of the
// causes of this package to stop it early.
func Run(ctx context.Context, cfg Config) Report {
	a := newAttempt(cfg)
	fail := a.live(ctx)
	ending, outcome := a.conclude(fail)
	a.captureServices(ctx, outcome)
	teardownErr := a.teardown(ctx)
	a.metrics.LatencyTotalS = since(a.started)
	if a.Earlier != nil {
		a.times()
	}
	a.finish(&outcome)

	if err := a.writeRecords(outcome); err != nil {
		// Without its records a bundle is worth nothing: that is trouble of ours.
		ending = InfraFailed
		outcome = ending.Outcome("", PhaseCollect, a.text(err.Error()))
		a.finish(&outcome)
		a.grade = bundle.Grade{PassThreshold: a.grade.PassThreshold, Reasons: outcome.Detail}
	}
	rep := Report{Ending: ending, Outcome: outcome, Grade: a.grade, Metrics: a.metrics, TeardownErr: teardownErr}
	if fail != nil {
		rep.Permanent, rep.Capacity = fail.permanent, fail.capacity
	}
	return rep
}

func newAttempt(cfg Config) *attempt {
	cfg.TeardownTimeout = cmp.Or(cfg.TeardownTimeout, defaultTeardownTimeout)
	if cfg.Task == nil {
		cfg.Task = &manifest.Task{ID: cfg.Row.TaskID, Steps: make([]manifest.Step, 1)}
	}
	hidden := slices.Concat(slices.Collect(maps.Keys(cfg.Secrets)), slices.Collect(maps.Keys(cfg.Task.SecretEnv)))
	a := &attempt{started: time.Now(), hidden: hidden, redact: redact.New(cfg.SecretValues()...)}
	// What has no value is the worker's to refuse.
	cfg.Task, _, _ = cfg.Task.WithSecrets(cfg.TaskSecrets)
	a.Config = cfg
	a.metrics.SchemaVersion = bundle.SchemaVersion
	if cfg.Earlier != nil {
		a.takeOver()
	}
	a.grade.PassThreshold = cfg.Run.Run.Grade.PassThreshold
	capture := cfg.Run.Run.Capture
	a.room.Bytes = cmp.Or(int64(capture.MaxArtifactBytes), defaultArtifactBytes)
	a.room.Entries = cmp.Or(capture.MaxArtifacts, defaultArtifacts)
	a.graderRoom = runtime.CopyLimits{Bytes: graderBytes, Entries: graderEntries}
	return a
}

// live goes from provisioning to collection. It returns nil when there is a verdict.
func (a *attempt) live(ctx context.Context) *failure {
	if a.Early != nil {
		return a.openFailure(ctx, a.Early.Ending, a.Early.Err)
	}
	if a.Earlier != nil {
		return a.regrade(ctx)
	}
	if f := a.provision(ctx); f != nil {
		return f
	}
	var fail *failure
	for i := range a.Task.Steps {
		a.step, a.number, a.used = &a.Task.Steps[i], i, map[string]bool{}
		// What the agent left is evidence, whatever happened.
		fail = cmp.Or(a.runStep(ctx), a.collectStep(ctx))
		if fail != nil || a.dead || a.over || a.endsHere() {
			break
		}
	}
	return cmp.Or(fail, a.collectWorkdir(ctx))
}

func (a *attempt) runStep(ctx context.Context) *failure {
	if f := a.setup(ctx); f != nil {
		return f
	}
	if f := a.awaitStep(ctx); f != nil || a.over {
		return f
	}
	if f := a.runAgent(ctx); f != nil {
		return f
	}
	if a.dead {
		a.addZero("the agent used up its " + a.agent.exhausted + " and its sandbox died of it")
		return nil
	}
	return a.runGrader(ctx)
}

// conclude turns what happened into the outcome.
func (a *attempt) conclude(fail *failure) (Ending, bundle.Outcome) {
	if fail == nil {
		a.finishGrade()
	}
	if fail = a.spoiled(fail); fail != nil {
		o := fail.ending.Outcome(fail.reason, fail.phase, a.text(a.inStep(fail)))
		o.Stage = fail.stage
		a.dropGrade(o.Detail)
		return fail.ending, o
	}
	ending := Graded
	switch {
	case a.agent.timedOut:
		ending = AgentTimedOut
	case a.agent.exhausted != "":
		ending = Exhausted
	}
	o := ending.Outcome("", "", a.text(a.agent.detail))
	if ending == Graded {
		o.TerminationReason = cmp.Or(a.agent.reason, o.TerminationReason)
		if !a.grade.BinaryPass {
			o.FailureClass = bundle.AgentFailure
		}
	}
	return ending, o
}

// finish adds what is known only after teardown.
func (a *attempt) finish(o *bundle.Outcome) {
	if a.shown != nil && a.shown.entered.Load() {
		a.flag(FlagEntered)
	}
	o.Flags = slices.Concat(o.Flags, a.flags)
	if o.Status == bundle.Errored {
		m := &a.metrics
		m.Error, m.ErrorReason, m.ErrorStage = o.TerminationReason, o.Detail, cmp.Or(o.Stage, o.Phase)
	}
}

// begin tells that a phase begins.
func (a *attempt) begin(phase string) {
	a.Log.Debug().Str("phase", phase).Msg("phase begins")
	if a.OnPhase != nil {
		a.OnPhase(phase)
	}
}
