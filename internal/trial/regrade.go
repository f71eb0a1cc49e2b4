// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/tidemill/tidemill/bundle"
)

// PhaseRestore brings what an earlier attempt left into a new sandbox, in the place of
// setup and agent.
const PhaseRestore = "restore"

// Earlier is the attempt of an agent whose leavings are graded once more.
type Earlier struct {
	Commit bundle.Commit
	Index  bundle.Index
	// Open opens a file of the attempt's bundle. Where the bytes are not those of the
	// index, reading has to end with an error in the place of io.EOF.
	Open func(context.Context, bundle.IndexEntry) (io.ReadCloser, error)
	// Pack is the sha256 of the pack whose grader judges; the task is of that pack.
	Pack string
}

// Regraded is what records and the commit say of it.
func (e *Earlier) Regraded() *bundle.Regraded {
	return &bundle.Regraded{Epoch: e.Commit.Epoch, Attempt: e.Commit.Attempt, Pack: e.Pack}
}

// read returns a whole file of the attempt's bundle, nil where there is none.
func (e *Earlier) read(ctx context.Context, name string) ([]byte, error) {
	entry, ok := e.Index.Find(name)
	if !ok {
		return nil, nil
	}
	r, err := e.Open(ctx, entry)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// regrade is the life of an attempt without an agent.
func (a *attempt) regrade(ctx context.Context) *failure {
	if f := a.carry(ctx); f != nil {
		return f
	}
	if f := a.provision(ctx); f != nil {
		return f
	}
	a.step, a.number, a.used = &a.Task.Steps[0], 0, map[string]bool{}
	if f := a.restore(ctx); f != nil {
		return f
	}
	return cmp.Or(a.runGrader(ctx), a.collectStep(ctx), a.collectWorkdir(ctx))
}

// takeOver makes the earlier agent's numbers, and how it ended, those of this attempt.
func (a *attempt) takeOver() {
	c := a.Earlier.Commit
	a.metrics = c.Metrics
	m := &a.metrics
	m.SchemaVersion = bundle.SchemaVersion
	m.ProvisioningDurationS, m.SetupDurationS, m.AgentSpanDurationS, m.TeardownDurationS = nil, nil, nil, nil
	m.GradingDurationS, m.CapturedServiceLogs = nil, nil
	m.Error, m.ErrorReason, m.ErrorStage = "", "", ""
	a.flag(FlagRegraded)
	for _, f := range c.Outcome.Flags {
		if strings.HasPrefix(f, FlagUnreadable) || f == FlagEntered {
			a.flag(f)
		}
	}
	if !c.Outcome.Scored {
		return // the trajectory says how the agent ended
	}
	a.agent.detail = c.Outcome.Detail
	switch {
	case c.Outcome.Status == bundle.TimedOut:
		a.agent.timedOut = true
	case c.Outcome.TerminationReason == bundle.ReasonResourceExhausted:
		a.agent.exhausted = c.Outcome.TerminationReason
	default:
		a.agent.reason = c.Outcome.TerminationReason
	}
}

// times are those of the earlier attempt, but for grading: what the trial would have
// taken with this grader.
func (a *attempt) times() {
	was := a.Earlier.Commit.Metrics
	m := &a.metrics
	m.ProvisioningDurationS, m.SetupDurationS, m.AgentSpanDurationS, m.TeardownDurationS = was.ProvisioningDurationS,
		was.SetupDurationS, was.AgentSpanDurationS, was.TeardownDurationS
	total := was.LatencyTotalS.Millis()
	if was.GradingDurationS != nil {
		total -= was.GradingDurationS.Millis()
	}
	if m.GradingDurationS != nil {
		total += m.GradingDurationS.Millis()
	}
	m.LatencyTotalS = bundle.NewSeconds(time.Duration(max(0, total)) * time.Millisecond)
}

// carry copies what the earlier bundle tells of the agent into this one.
func (a *attempt) carry(ctx context.Context) *failure {
	if err := a.carryTrajectory(ctx); err != nil {
		return a.unread(ctx, err)
	}
	if err := a.carryFile(ctx, agentLogFile); err != nil {
		return a.unread(ctx, err)
	}
	return nil
}

const (
	trajectoryFile = "trajectory.yaml"
	agentLogFile   = "logs/agent.log"
)

// carriedTrajectory is what is taken from an earlier trajectory.yaml; the messages stay
// as they were written.
type carriedTrajectory struct {
	StartTS  string    `yaml:"start_ts"`
	EndTS    string    `yaml:"end_ts"`
	AgentEnd *agentWas `yaml:"agent_end"`
	Messages yaml.Node `yaml:"messages"`
}

// agentWas is how the agent ended, for trajectories whose status tells of something else.
type agentWas struct {
	TimedOut  bool   `yaml:"timed_out,omitempty"`
	Exhausted string `yaml:"exhausted,omitempty"`
	Reason    string `yaml:"reason,omitempty"`
	Detail    prose  `yaml:"detail,omitempty"`
}

func (a *attempt) carryTrajectory(ctx context.Context) error {
	body, err := a.Earlier.read(ctx, trajectoryFile)
	if body == nil || err != nil {
		return err
	}
	t := &carriedTrajectory{}
	if err := yaml.Unmarshal(body, t); err != nil {
		return &bundle.MismatchError{Path: trajectoryFile, Problem: "is no trajectory: " + err.Error()}
	}
	a.carried = t
	if w := t.AgentEnd; w != nil {
		a.agent = agentEnd{timedOut: w.TimedOut, exhausted: w.Exhausted, reason: w.Reason, detail: string(w.Detail)}
	}
	return nil
}

// carryFile copies a file of the earlier bundle as it is; it holds no secrets.
func (a *attempt) carryFile(ctx context.Context, name string) error {
	e, ok := a.Earlier.Index.Find(name)
	if !ok {
		return nil
	}
	r, err := a.Earlier.Open(ctx, e)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := a.Files.Create(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errOurDisk, err)
	}
	_, err = io.Copy(diskWriter{f}, r)
	return errors.Join(err, f.Close())
}

// unread is the failure of an attempt that can't read the earlier bundle. A bundle that
// is not what was sealed won't get better.
func (a *attempt) unread(ctx context.Context, err error) *failure {
	f := &failure{ending: InfraFailed, phase: PhaseRestore, detail: "earlier attempt: " + err.Error()}
	_, f.permanent = errors.AsType[*bundle.MismatchError](err)
	if ending, ok := stopped(ctx); ok {
		f.ending, f.detail, f.permanent = ending, context.Cause(ctx).Error(), false
	}
	return f
}

// trajectoryRecord is trajectory.yaml: of this attempt's agent, or of the earlier one's.
func (a *attempt) trajectoryRecord(o bundle.Outcome) any {
	t := trajectory{
		TaskID: prose(a.Row.TaskID), TrialIndex: a.Row.TrialIndex, TrialID: a.Row.TrialID,
		StartTS: stamp(a.started), EndTS: stamp(time.Now()),
		Status: o.Status, TerminationReason: o.TerminationReason, ProvisionStage: o.Stage,
		Messages: nonNil(a.messages), SimulatorSchemaVersion: 1,
	}
	if !o.Scored && a.agent != (agentEnd{}) {
		t.AgentEnd = &agentWas{a.agent.timedOut, a.agent.exhausted, a.agent.reason, prose(a.text(a.agent.detail))}
	}
	c := a.carried
	if c == nil {
		return t
	}
	t.StartTS, t.EndTS = cmp.Or(c.StartTS, t.StartTS), cmp.Or(c.EndTS, t.EndTS)
	return withMessages{t, &c.Messages}
}

// withMessages is a trajectory with the messages of another, as they were written.
type withMessages struct {
	trajectory
	messages *yaml.Node
}

// MarshalYAML implements [yaml.Marshaler].
func (w withMessages) MarshalYAML() (any, error) {
	var n yaml.Node
	if err := n.Encode(w.trajectory); err != nil || w.messages.Kind != yaml.SequenceNode {
		return w.trajectory, err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "messages" {
			n.Content[i+1] = w.messages
		}
	}
	return &n, nil
}

var _ yaml.Marshaler = withMessages{}
