// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/runtime"
)

// writeRecords writes the bundle's own files. Complete and failed attempts pass here
// alike, so that their shapes can't drift apart.
func (a *attempt) writeRecords(o *bundle.Outcome) error {
	a.closeAll()
	m := &a.metrics
	if o.Status == bundle.Errored {
		m.Error, m.ErrorReason, m.ErrorStage = o.TerminationReason, o.Detail, cmp.Or(o.Stage, o.Phase)
	}
	end := time.Now()
	records := []struct {
		name string
		v    any
	}{
		{"task.yaml", a.taskRecord()},
		{"trajectory.yaml", trajectory{
			TaskID: a.Row.TaskID, TrialIndex: a.Row.TrialIndex, TrialID: a.Row.TrialID,
			StartTS: stamp(a.started), EndTS: stamp(end),
			Status: o.Status, TerminationReason: o.TerminationReason, ProvisionStage: o.Stage,
			Messages: nonNil(a.messages), SimulatorSchemaVersion: 1,
		}},
		{"metrics.yaml", *m},
		{"grade.yaml", gradeRecord{Grade: a.grade}},
		{"env.yaml", a.envRecord(*o)},
	}
	for _, r := range records {
		body, err := bundle.EncodeYAML(r.v)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if err := a.write(r.name, body); err != nil {
			return err
		}
	}
	if len(a.artifacts.Kept) > 0 || a.artifacts.SkippedTotal > 0 {
		a.artifacts.SchemaVersion = bundle.SchemaVersion
		a.artifacts.Kept, a.artifacts.Skipped = nonNil(a.artifacts.Kept), nonNil(a.artifacts.Skipped)
		body, err := json.MarshalIndent(a.artifacts, "", "  ")
		if err != nil {
			return err
		}
		if err := a.write("artifacts.json", append(body, '\n')); err != nil {
			return err
		}
	}
	return errors.Join(a.problems...)
}

// closeAll ends logs that are still open, after an early failure.
func (a *attempt) closeAll() {
	a.closeLogs()
	a.agentLog, a.gradeLog = nil, nil
}

func (a *attempt) write(name string, body []byte) error {
	f, err := a.Files.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(a.redact.Bytes(body))
	return errors.Join(err, f.Close())
}

// gradeRecord is grade.yaml: our grade and the reference's component keys, which its
// readers look up.
type gradeRecord struct {
	bundle.Grade `yaml:",inline"`
	Components   components `yaml:"components"`
}

type components struct {
	StateChecks     *float64 `yaml:"state_checks"`
	TranscriptRules *float64 `yaml:"transcript_rules"`
	LLMJudge        *float64 `yaml:"llm_judge"`
	CustomChecks    *float64 `yaml:"custom_checks"`
}

// MarshalYAML puts the grader's score where the reference has the score of a grader
// that a pack brings along.
func (g gradeRecord) MarshalYAML() (any, error) {
	type plain gradeRecord
	g.Components.CustomChecks = g.Score
	return plain(g), nil
}

type taskRecord struct {
	TaskID      string         `yaml:"task_id"`
	TrialIndex  int            `yaml:"trial_index"`
	TrialID     string         `yaml:"trial_id"`
	RunID       string         `yaml:"run_id"`
	Epoch       int            `yaml:"epoch"`
	Attempt     int            `yaml:"attempt"`
	Category    string         `yaml:"category,omitempty"`
	Description string         `yaml:"description"` // the instruction of the first step
	Steps       []stepRecord   `yaml:"steps,omitempty"`
	Metadata    map[string]any `yaml:"metadata,omitempty"`
	Pack        string         `yaml:"pack"`
	Agent       string         `yaml:"agent"`
	Command     []string       `yaml:"command,omitempty,flow"`
	Grade       []string       `yaml:"grade,flow"`
}

type stepRecord struct {
	Name        string `yaml:"name"`
	Instruction string `yaml:"instruction"`
}

func (a *attempt) taskRecord() taskRecord {
	r := taskRecord{
		TaskID: a.Row.TaskID, TrialIndex: a.Row.TrialIndex, TrialID: a.Row.TrialID, RunID: a.Run.RunID,
		Epoch: a.Epoch, Attempt: a.Attempt, Category: a.Task.Category, Metadata: a.Task.Metadata,
		Pack: a.Row.Pack, Agent: a.Run.Run.Agent.Name, Command: a.Run.Run.Agent.Command,
		Description: a.Task.Steps[0].Instruction, Grade: a.Task.Steps[0].Grade.Command,
	}
	if len(a.Task.Steps) > 1 {
		for _, s := range a.Task.Steps {
			r.Steps = append(r.Steps, stepRecord{Name: s.Name, Instruction: s.Instruction})
		}
	}
	return r
}

type envRecord struct {
	Environment environmentRecord `yaml:"environment"`
	Sandbox     *sandboxRecord    `yaml:"sandbox"`
	Outcome     bundle.Outcome    `yaml:"outcome"`
	Worker      workerRecord      `yaml:"worker"`
}

type environmentRecord struct {
	NetworkPolicy string         `yaml:"network_policy"`
	Allowlist     []string       `yaml:"limited_internet_allowlist,omitempty"`
	RunnerService string         `yaml:"runner_service"`
	Services      map[string]any `yaml:"services"`
}

type sandboxRecord struct {
	Name   string         `yaml:"name"`
	Handle runtime.Handle `yaml:"handle"`
}

type workerRecord struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version,omitempty"`
	OS      string `yaml:"os"`
	Arch    string `yaml:"arch"`
}

func (a *attempt) envRecord(o bundle.Outcome) envRecord {
	r := envRecord{
		Environment: environmentRecord{
			NetworkPolicy: a.Run.Run.NetworkPolicy, Allowlist: a.Run.Run.LimitedInternetAllowlist,
			Services: map[string]any{},
		},
		Outcome: o,
		Worker:  workerRecord{Name: a.Worker, Version: a.Version, OS: goruntime.GOOS, Arch: goruntime.GOARCH},
	}
	if a.box != nil {
		r.Sandbox = &sandboxRecord{Name: a.box.Name(), Handle: a.box.Handle()}
	}
	return r
}

// readReports reads what the agent says of itself, before the sandbox goes.
func (a *attempt) readReports(ctx context.Context) {
	a.readReport(ctx, trajectoryATIF, maxTrajectory, func(data []byte) error {
		messages, use, err := parseATIF(data)
		if use != nil {
			use.into(&a.metrics)
		}
		a.messages = messages
		return err
	})
	if a.messages == nil {
		a.readReport(ctx, trajectoryLog, maxTrajectory, func(data []byte) error {
			messages, err := parseMessages(data)
			a.messages = messages
			return err
		})
	}
	a.readReport(ctx, usageFile, maxVerdict, func(data []byte) error {
		use, err := parseUsage(data)
		if err == nil {
			use.into(&a.metrics)
		}
		return err
	})
}

func (a *attempt) readReport(ctx context.Context, name string, limit int64, use func([]byte) error) {
	data, err := a.readFile(ctx, runtime.AgentLogs, name, limit)
	if err == nil {
		err = use(data)
	}
	if err != nil && !errors.Is(err, runtime.ErrNotExist) {
		a.Log.Debug().Err(err).Str("file", name).Msg("agent's report is not usable")
		a.flag("unreadable_" + name)
	}
}

// stamp is the time format of records: RFC 3339 in UTC with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return slices.Clip(list)
}

var _ yaml.Marshaler = gradeRecord{}
