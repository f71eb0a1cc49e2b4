// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime/scripted"
)

// files makes a directory.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range contents {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// environment is what env.yaml says.
type environment struct {
	Environment struct {
		Image         string
		Workdir       string
		Users         map[string]string
		NetworkPolicy string `yaml:"network_policy"`
		Network       map[string]struct {
			Policy string
			Allow  []string
		}
	}
	Sandbox *struct {
		Images []struct{ Ref, ID, Digest, Origin string }
	}
}

func (r result) environment(t *testing.T) (e environment) {
	t.Helper()
	r.decode(t, "env.yaml", &e)
	return e
}

func TestWhatTheSandboxIsMadeFrom(t *testing.T) {
	const built = "image built"
	context := files(t, map[string]string{"Dockerfile": "FROM scratch\n"})
	for name, c := range map[string]struct {
		run, task string
		build     bool
		want      string
	}{
		"nothing":                           {},
		"the task's image":                  {task: "debian:12", want: "debian:12"},
		"the run's image before the task's": {run: "ubuntu:24.04", task: "debian:12", want: "ubuntu:24.04"},
		"a build":                           {build: true, want: built},
		"an image that is there before one to be": {task: "debian:12", build: true, want: "debian:12"},
		"the run's image before a build":          {run: "ubuntu:24.04", build: true, want: "ubuntu:24.04"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.Run.Run.Runtime.Image, j.Task.Image, j.Task.Workdir = c.run, c.task, "/app"
			if c.build {
				j.Task.Build = &manifest.Build{Context: context, Dockerfile: "Dockerfile"}
			}
			j.agent("pwd", "write out.txt hello", "echo-env TIDEMILL_WORKDIR")
			j.grader("judge /app/out.txt hello")
			got := j.run(t, t.Context())
			if !got.Grade.BinaryPass {
				t.Errorf("%+v", got.Outcome)
			}
			equal(t, "agent.log", []string{"/app", "/app"}, lines(got.files["logs/agent.log"]))
			env := got.environment(t)
			asked := strings.TrimPrefix(c.want, built)
			equal(t, "image and workdir", [2]string{asked, "/app"}, [2]string{env.Environment.Image, env.Environment.Workdir})
			switch images := env.Sandbox.Images; {
			case c.want == "":
				equal(t, "images", 0, len(images))
			case len(images) != 1 || images[0].Ref != asked || !strings.HasPrefix(images[0].ID, "sha256:"):
				t.Errorf("images %+v", images)
			case c.want == built:
				equal(t, "origin and digest", [2]string{"built", ""}, [2]string{images[0].Origin, images[0].Digest})
			}
			if strings.Contains(got.files["env.yaml"], context) {
				t.Error("env.yaml names a directory of the worker")
			}
		})
	}
}

func TestNetworkOfEachPhase(t *testing.T) {
	own := map[string]manifest.Network{
		"setup": {Policy: "full_internet"}, "agent": {Policy: "limited_internet", Allow: []string{"example.com"}},
	}
	for name, c := range map[string]struct {
		run  string
		task map[string]manifest.Network
		want []string // setup, agent, grade
	}{
		"the run says it for all":      {"full_internet", own, []string{"full_internet", "full_internet", "full_internet"}},
		"the run leaves it to them":    {manifest.TaskNetwork, own, []string{"full_internet", "limited_internet", "no_internet"}},
		"and they ask for nothing":     {manifest.TaskNetwork, nil, []string{"no_internet", "no_internet", "no_internet"}},
		"a list of the run's own":      {"limited_internet", nil, []string{"limited_internet", "limited_internet", "limited_internet"}},
		"a list of a task doesn't mix": {"no_internet", own, []string{"no_internet", "no_internet", "no_internet"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := multi(t, step("one", `["phase"]`, "phase", "write verifier/reward.txt 1"), step("two", `["phase"]`, "phase", "write verifier/reward.txt 1"))
			for i := range j.Task.Steps {
				j.Task.Steps[i].Setup = &manifest.Program{Command: argv("phase")}
			}
			j.Run.Run.NetworkPolicy, j.Task.Network = c.run, c.task
			got := j.run(t, t.Context())
			setup, agent, grade := "setup "+c.want[0], "agent "+c.want[1], "grade "+c.want[2]
			log := slices.DeleteFunc(lines(got.files["logs/agent.log"]), func(s string) bool { return strings.HasPrefix(s, "step ") })
			equal(t, "agent.log", []string{setup, agent, setup, agent}, log)
			equal(t, "grader.log", []string{grade, grade}, lines(got.files["logs/grader.log"]))
			env := got.environment(t).Environment
			equal(t, "network_policy", c.want[1], env.NetworkPolicy)
			if c.run != manifest.TaskNetwork {
				equal(t, "network", 0, len(env.Network))
				return
			}
			for i, phase := range []string{"setup", "agent", "grade"} {
				equal(t, phase, c.want[i], env.Network[phase].Policy)
			}
			equal(t, "hosts", c.task["agent"].Allow, env.Network["agent"].Allow)
		})
	}
}

// What a runtime can't do for a task is said when its sandbox opens, and not tried again.
func TestWhatATaskAsksForIsRefused(t *testing.T) {
	none := scripted.Everything()
	none.Images, none.Users, none.Policies = false, false, none.Policies[:2]
	for name, c := range map[string]struct {
		set    func(*manifest.Task)
		detail string
	}{
		"an image":  {func(task *manifest.Task) { task.Image = "debian:12" }, "can't enforce image debian:12"},
		"a workdir": {func(task *manifest.Task) { task.Workdir = "/app" }, "can't enforce workdir /app"},
		"a user":    {func(task *manifest.Task) { task.Users = map[string]string{"grade": "root"} }, "can't enforce user [root]"},
		"a network": {
			func(task *manifest.Task) {
				task.Network = map[string]manifest.Network{"grade": {Policy: "limited_internet"}}
			},
			"can't enforce network_policy limited_internet; it supports full_internet, no_internet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.rt = scripted.New(scripted.Config{Provider: j.provider, Properties: &none})
			j.Run.Run.NetworkPolicy = manifest.TaskNetwork
			c.set(j.Task)
			got := j.run(t, t.Context())
			if got.Ending != trial.ProvisionFailed || !got.Permanent || !strings.Contains(got.Outcome.Detail, c.detail) {
				t.Errorf("%s, permanent %t: %s", got.Ending, got.Permanent, got.Outcome.Detail)
			}
		})
	}
}

// Tests and solution are there in their phase, and not so much as their directories
// outside of it.
func TestPlacesOfAPhase(t *testing.T) {
	solve := manifest.Program{
		Command: argv("require-file solution/solve.sh", "require-no-file /tests", "require-no-file /logs/verifier", "write out.txt hello"),
		Files:   files(t, map[string]string{"solve.sh": "solve"}),
	}
	var steps []manifest.Step
	for _, name := range []string{"one", "two"} {
		s := step(name, "", "require-no-file /solution", "require-file tests/helpers.sh", "read tests/test.sh", "judge out.txt hello", "remove out.txt")
		s.Grade.Base = files(t, map[string]string{"helpers.sh": "shared", "test.sh": "shared"})
		s.Grade.Files = files(t, map[string]string{"test.sh": name})
		s.Setup = &manifest.Program{Command: argv("require-no-file /solution", "require-no-file /tests", "require-no-file /logs/verifier")}
		s.Oracle = &solve
		steps = append(steps, s)
	}
	j := multi(t, steps...)
	j.Run.Run.Agent = manifest.Agent{Name: manifest.OracleAgent}
	got := j.run(t, t.Context())
	if got.Ending != trial.Graded || !got.Grade.BinaryPass {
		t.Fatalf("%+v, grade %+v\n%s%s", got.Outcome, got.Grade, got.files["logs/agent.log"], got.files["logs/grader.log"])
	}
	equal(t, "tests of the step over those of the task", []string{"onetwo"}, lines(got.files["logs/grader.log"]))
}

// Files beside the instruction are for everybody to read, and each step's own.
func TestInputOfAStep(t *testing.T) {
	one := step("one", "", "write verifier/reward.txt 1")
	one.AgentRow, one.Input = nil, map[string][]byte{"task.json": []byte("servers\n")}
	two := one
	two.Name, two.Input = "two", nil
	j := multi(t, one, two)
	j.agent("first 1 read input/task.json", "read input/instruction.md", "emit \"\\n\"", "require-no-file /workdir/task.json")
	got := j.run(t, t.Context())
	equal(t, "agent.log", []string{"step 1-one", "servers", "Do one.", "step 2-two", "Do one."}, lines(got.files["logs/agent.log"]))
}

// Each program has the task's variables and its own, a secret where it is meant to be.
func TestVariablesOfEachProgram(t *testing.T) {
	const secret = "the-judge's-key"
	j := newJob(t)
	s := &j.Task.Steps[0]
	show := []string{"echo-env PROJECT", "echo-env OWN", "echo-env KEY"}
	j.Task.Env = map[string]string{"PROJECT": "demo", "OWN": "task"}
	s.Setup = &manifest.Program{Command: show, Env: map[string]string{"OWN": "setup"}}
	j.agent(append(show, "write out.txt hello")...)
	s.Grade = manifest.Program{
		Command: append(show, "judge out.txt hello"), Env: map[string]string{"OWN": "grade"}, SecretEnv: map[string]string{"KEY": "bearer ${JUDGE_KEY}"},
	}
	j.TaskSecrets = map[string]string{"JUDGE_KEY": secret}
	got := j.run(t, t.Context())
	equal(t, "agent.log", []string{"demo", "setup", "demo", "task"}, lines(got.files["logs/agent.log"]))
	equal(t, "grader.log", []string{"demo", "grade", "bearer [redacted]"}, lines(got.files["logs/grader.log"]))
	for name, body := range got.files {
		if strings.Contains(body, secret) {
			t.Errorf("%s holds the secret", name)
		}
	}
}

// A variable of the task that holds a secret is for its programs, not for who looks in.
func TestWhoLooksInHasNoTaskSecrets(t *testing.T) {
	j := newJob(t)
	j.Task.SecretEnv = map[string]string{"KEY": "${TASK_KEY}"}
	j.TaskSecrets = map[string]string{"TASK_KEY": "of-the-task"}
	j.agent("echo-env KEY", "write out.txt hello")
	var env map[string]string
	j.OnOpen = func(l *trial.Live) { env = l.Env() }
	got := j.run(t, t.Context())
	if _, there := env["KEY"]; there || len(env) == 0 {
		t.Errorf("who looks in sees %v", env)
	}
	equal(t, "agent.log", []string{"[redacted]"}, lines(got.files["logs/agent.log"]))
}
