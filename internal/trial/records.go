// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// writeRecords writes the bundle's own files. Complete and failed attempts pass here
// alike, so that their shapes can't drift apart.
func (a *attempt) writeRecords(o bundle.Outcome) error {
	logs := a.closeLogs()
	records := []struct {
		name string
		v    any
	}{
		{"task.yaml", a.taskRecord()},
		{trajectoryFile, a.trajectoryRecord(o)},
		{"metrics.yaml", a.metrics},
		{"grade.yaml", gradeRecord{Grade: a.grade}},
		{"env.yaml", a.envRecord(o)},
	}
	for _, r := range records {
		if err := a.writeYAML(r.name, r.v); err != nil {
			return err
		}
	}
	if len(a.artifacts.Kept) > 0 || a.artifacts.SkippedTotal > 0 {
		a.artifacts.SchemaVersion = bundle.SchemaVersion
		a.artifacts.Kept, a.artifacts.Skipped = nonNil(a.artifacts.Kept), nonNil(a.artifacts.Skipped)
		body, err := json.MarshalIndent(a.artifacts, "", "  ")
		if err != nil {
			return fmt.Errorf("%s: %w", artifactsFile, err)
		}
		if err := a.write(artifactsFile, append(body, '\n')); err != nil {
			return err
		}
	}
	return logs
}

func (a *attempt) writeYAML(name string, v any) error {
	body, err := bundle.EncodeYAML(v)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return a.write(name, body)
}

// write writes a file that holds no secrets any more.
func (a *attempt) write(name string, body []byte) error {
	f, err := a.Files.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
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
	TaskID      prose        `yaml:"task_id"`
	TrialIndex  int          `yaml:"trial_index"`
	TrialID     string       `yaml:"trial_id"`
	RunID       string       `yaml:"run_id"`
	Epoch       int          `yaml:"epoch"`
	Attempt     int          `yaml:"attempt"`
	Category    prose        `yaml:"category,omitempty"`
	Description prose        `yaml:"description"` // the instruction of the first step
	Steps       []stepRecord `yaml:"steps,omitempty"`
	Metadata    any          `yaml:"metadata,omitempty"`
	Pack        string       `yaml:"pack"`
	// Regraded says whose leavings were judged, and by which pack.
	Regraded *bundle.Regraded `yaml:"regraded,omitempty"`
	Agent    string           `yaml:"agent"`
	Command  []string         `yaml:"command,omitempty,flow"`
	Grade    []string         `yaml:"grade,flow"`
}

type stepRecord struct {
	Name        prose `yaml:"name"`
	Instruction prose `yaml:"instruction"`
}

func (a *attempt) taskRecord() taskRecord {
	r := taskRecord{
		TaskID: prose(a.Row.TaskID), TrialIndex: a.Row.TrialIndex, TrialID: a.Row.TrialID, RunID: a.Run.RunID,
		Epoch: a.Epoch, Attempt: a.Attempt, Category: prose(a.Task.Category),
		Pack: a.Row.Pack, Agent: a.Run.Run.Agent.Name, Command: a.redactAll(a.Run.Run.Agent.Command),
		Description: prose(a.redact.String(a.Task.Steps[0].Instruction)), Grade: a.redactAll(a.Task.Steps[0].Grade.Command),
	}
	if a.Earlier != nil {
		r.Regraded = a.Earlier.Regraded()
	}
	if len(a.Task.Metadata) > 0 {
		r.Metadata = proseIn(a.redact.Any(a.Task.Metadata))
	}
	if len(a.Task.Steps) > 1 {
		for _, s := range a.Task.Steps {
			r.Steps = append(r.Steps, stepRecord{Name: prose(s.Name), Instruction: prose(a.redact.String(s.Instruction))})
		}
	}
	return r
}

func (a *attempt) redactAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = a.redact.String(s)
	}
	return out
}

type envRecord struct {
	Environment environmentRecord `yaml:"environment"`
	Sandbox     *sandboxRecord    `yaml:"sandbox"`
	Outcome     bundle.Outcome    `yaml:"outcome"`
	Worker      workerRecord      `yaml:"worker"`
}

type environmentRecord struct {
	Runtime string `yaml:"runtime"`
	// Image as it was asked for; empty for one that was built, and where there is none.
	Image     string                   `yaml:"image,omitempty"`
	Workdir   string                   `yaml:"workdir,omitempty"` // that the task asks for
	Users     map[runtime.Phase]string `yaml:"users,omitempty"`
	Resources runtime.Resources        `yaml:"resources"`
	// NetworkPolicy and Allowlist are those of the agent's phase. Network is there where
	// the run leaves it to its tasks.
	NetworkPolicy runtime.NetworkPolicy             `yaml:"network_policy"`
	Allowlist     []string                          `yaml:"limited_internet_allowlist,omitempty"`
	Network       map[runtime.Phase]runtime.Network `yaml:"network,omitempty"`
	RunnerService string                            `yaml:"runner_service"`
	Services      map[string]any                    `yaml:"services"`
}

type sandboxRecord struct {
	Name   string         `yaml:"name"`
	Handle runtime.Handle `yaml:"handle"`
	// Description is what the runtime found out.
	runtime.Description `yaml:",inline"`
}

type workerRecord struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version,omitempty"`
	OS      string `yaml:"os"`
	Arch    string `yaml:"arch"`
}

// recordedUsers are the users of the phases, a grader's own among them.
func recordedUsers(task *manifest.Task) map[runtime.Phase]string {
	users := usersOf(task)
	for _, s := range task.Steps {
		if s.Grade.User != "" {
			users[runtime.Grade] = s.Grade.User
		}
	}
	return users
}

func (a *attempt) envRecord(o bundle.Outcome) envRecord {
	run := a.Run.Run
	network := networks(run, a.Task)
	r := envRecord{
		Environment: environmentRecord{
			Runtime: a.RuntimeType, Image: imageOf(run, a.Task).Ref, Workdir: a.Task.Workdir, Users: recordedUsers(a.Task),
			Resources:     Resources(run.Runtime.Resources, a.Task.Resources),
			NetworkPolicy: network[runtime.Agent].Policy, Allowlist: network[runtime.Agent].Allow,
			Services: map[string]any{},
		},
		Outcome: o,
		Worker:  workerRecord{Name: a.Worker, Version: a.Version, OS: goruntime.GOOS, Arch: goruntime.GOARCH},
	}
	if run.NetworkPolicy == manifest.TaskNetwork {
		r.Environment.Network = network
	}
	if a.box != nil {
		r.Sandbox = &sandboxRecord{Name: a.box.Name(), Handle: a.box.Handle()}
		if d, ok := a.box.(runtime.Described); ok {
			r.Sandbox.Description = d.Describe()
		}
	}
	return r
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return slices.Clip(list)
}

var _ yaml.Marshaler = gradeRecord{}
