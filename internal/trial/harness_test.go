// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"gopkg.in/yaml.v3"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime/scripted"
)

const trialID = "10e6394858246a5db435a670db94eb3b"

// job is an attempt that a test describes. Its programs are instructions of the
// scripted runtime.
type job struct {
	trial.Config
	rt       *scripted.Runtime
	provider *scripted.Provider
	clock    *clock
	files    trial.Files     // in place of the bundle's writer
	left     func() []string // in place of the provider's
}

// newJob is an attempt whose agent passes.
func newJob(t *testing.T) *job {
	t.Helper()
	provider := &scripted.Provider{}
	j := &job{provider: provider, clock: &clock{}}
	j.rt = scripted.New(scripted.Config{Provider: provider, Clock: j.clock})
	j.RuntimeType = scripted.Type
	j.Run = &manifest.RunRecord{RunID: "demo-1"}
	r := &j.Run.Run
	r.Agent = manifest.Agent{Name: "solver", Command: argv("write out.txt hello", "print done")}
	r.Grade.PassThreshold = 1
	r.NetworkPolicy = "no_internet"
	r.Capture.LogTail = 3
	j.Task = &manifest.Task{ID: "demo/0", Steps: []manifest.Step{{
		Instruction: "Say hello in out.txt.",
		Grade:       manifest.Program{Command: argv("judge out.txt hello")},
	}}}
	j.Row = bundle.PlanRow{TaskID: "demo/0", TrialIndex: 2, TrialID: trialID, Pack: "0123abcd"}
	j.Epoch, j.Attempt = 1, 1
	j.StoreUUID, j.Worker, j.Version = "6f1c0a52-3d0e-4b5e-9a51-0c8f5f1f2e77", "worker-1", "v0"
	j.Log = zerolog.New(zerolog.NewTestWriter(t))
	return j
}

func argv(instructions ...string) []string { return instructions }

func (j *job) agent(instructions ...string) { j.Run.Run.Agent.Command = instructions }

func (j *job) grader(instructions ...string) { j.Task.Steps[0].Grade.Command = instructions }

// opens sets the script that provisioning goes by.
func (j *job) opens(lines ...string) { j.env(scripted.OpenVar, strings.Join(lines, "\n")) }

func (j *job) closes(lines ...string) { j.env(scripted.CloseVar, strings.Join(lines, "\n")) }

func (j *job) env(name, value string) {
	if j.Task.Env == nil {
		j.Task.Env = map[string]string{}
	}
	j.Task.Env[name] = value
}

// result is what an attempt left.
type result struct {
	trial.Report
	files map[string]string // real name → content, without index.json
}

// run runs the attempt, and checks what holds for every one: the sandbox is gone, the
// bundle can be sealed and has its records, and they say what the report says.
func (j *job) run(t *testing.T, ctx context.Context) result {
	t.Helper()
	if j.Environment == nil && j.Early == nil {
		env, err := j.rt.Prepare(ctx, trial.RunSpec(j.Run.Run, j.Run.RunID, j.StoreUUID, j.Worker))
		if err != nil {
			t.Fatalf("prepare: %v", err)
		}
		j.Environment = env
	}
	writer, err := bundle.NewWriter(filepath.Join(t.TempDir(), "bundle"), nil)
	if err != nil {
		t.Fatal(err)
	}
	j.Files = writer
	if j.files != nil {
		j.Files = j.files
	}
	began := time.Now()
	res := result{Report: trial.Run(ctx, j.Config)}
	took := time.Since(began)
	if e := j.Earlier; e != nil { // whose times count here
		took += time.Duration(e.Commit.Metrics.LatencyTotalS.Millis()) * time.Millisecond
	}
	look := j.provider.Left
	if j.left != nil {
		look = j.left
	}
	if left := look(); len(left) > 0 && res.TeardownErr == nil {
		t.Errorf("left behind: %q", left)
	}
	if j.files != nil {
		return res
	}
	sealed, err := writer.Seal(context.WithoutCancel(ctx))
	if err != nil {
		t.Fatalf("seal: %v", err)
	}
	res.files = map[string]string{}
	for _, e := range sealed.Files {
		name, err := bundle.UnescapeName(e.Path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(filepath.Join(sealed.Dir, bundle.LocalPath(e.Path)))
		if err != nil {
			t.Fatal(err)
		}
		res.files[name] = string(body)
	}
	res.check(t, took)
	return res
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// check compares the records with the report.
func (r result) check(t *testing.T, took time.Duration) {
	t.Helper()
	row := trial.Table[r.Ending]
	if r.Outcome.Status != row.Status || r.Outcome.Scored != row.Scored {
		t.Errorf("outcome %+v is not of the row %s", r.Outcome, r.Ending)
	}
	if r.Grade.Scored != r.Outcome.Scored || (r.Grade.Score != nil) != r.Grade.Scored {
		t.Errorf("grade %+v with outcome %+v", r.Grade, r.Outcome)
	}
	var metrics bundle.Metrics
	r.decode(t, "metrics.yaml", &metrics)
	if diff := cmp.Diff(r.Metrics, metrics); diff != "" {
		t.Errorf("metrics.yaml (-report +file):\n%s", diff)
	}
	var grade bundle.Grade
	r.decode(t, "grade.yaml", &grade)
	if diff := cmp.Diff(r.Grade, grade); diff != "" {
		t.Errorf("grade.yaml (-report +file):\n%s", diff)
	}
	var env struct{ Outcome bundle.Outcome }
	r.decode(t, "env.yaml", &env)
	if diff := cmp.Diff(r.Outcome, env.Outcome); diff != "" {
		t.Errorf("env.yaml (-report +file):\n%s", diff)
	}
	for _, name := range []string{"task.yaml", "trajectory.yaml"} {
		r.decode(t, name, &map[string]any{})
	}
	checkDurations(t, metrics, took)
}

// checkDurations holds for every attempt: no phase is negative, and together they take
// no longer than the whole, which took no longer than what was measured around it.
func checkDurations(t *testing.T, m bundle.Metrics, took time.Duration) {
	t.Helper()
	var sum int64
	phases := 0
	for _, d := range []*bundle.Seconds{
		m.ProvisioningDurationS, m.SetupDurationS, m.AgentSpanDurationS, m.GradingDurationS, m.TeardownDurationS,
	} {
		if d == nil {
			continue
		}
		phases++
		sum += d.Millis()
		if *d < 0 {
			t.Errorf("a phase took %s seconds", d)
		}
	}
	// Each is rounded by half a millisecond at most.
	if total := m.LatencyTotalS.Millis(); sum > total+int64(phases+1) || total > took.Milliseconds()+1 {
		t.Errorf("phases took %d ms, the attempt %d ms, the call %s", sum, total, took)
	}
}

func (r result) decode(t *testing.T, name string, into any) {
	t.Helper()
	body, ok := r.files[name]
	if !ok {
		t.Errorf("no %s in the bundle", name)
		return
	}
	if err := yaml.Unmarshal([]byte(body), into); err != nil {
		t.Errorf("%s: %v\n%s", name, err, body)
	}
}
