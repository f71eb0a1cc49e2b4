// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/scripted"
)

// newHarborLab submits Harbor tasks whose scripts hold instructions. Paths are relative to
// the directory of all tasks.
func newHarborLab(t *testing.T, extra string, contents map[string]string) *lab {
	t.Helper()
	return newLabBy(t, func(l *lab) {
		dir := t.TempDir()
		for name, body := range contents {
			write(t, filepath.Join(dir, "pack", name), body)
		}
		l.plan(dir, "version: 1\nname: lab\npacks: [pack]\nagent: {name: oracle}\nruntime: {type: scripted}\n"+extra)
	})
}

// greeter is a task of three steps that use what a step can have.
func greeter(changes map[string]string) map[string]string {
	files := map[string]string{
		"greeter/task.toml": `
artifacts = ["/app/greet.sh", "/var/log/app.log"]
[environment]
workdir = "/app"
allow_internet = false
[environment.env]
PROJECT = "greeter"
[environment.healthcheck]
command = "signal healthy"
[verifier]
user = "root"
[agent]
user = "ann"
network_mode = "public"

[[steps]]
name = "scaffold"
min_reward = 1.0
[[steps]]
name = "implement"
[steps.verifier.env]
EXPECTED = "hello"
[steps.healthcheck]
command = "require-file /app/greet.sh"
interval_sec = 1
retries = 2
[[steps]]
name = "document"
artifacts = [{source = "/app/README.md", destination = "docs/readme"}]
`,
		"greeter/environment/Dockerfile":             "FROM scratch\n",
		"greeter/tests/helpers.sh":                   "print helpers\n",
		"greeter/steps/scaffold/instruction.md":      "Scaffold it.\n",
		"greeter/steps/scaffold/solution/solve.sh":   "whoami\nphase\nwrite /app/greet.sh one\n",
		"greeter/steps/scaffold/tests/test.sh":       "whoami\nphase\nrun /tests/helpers.sh\nrequire-no-file /solution\njudge /app/greet.sh one\n",
		"greeter/steps/implement/instruction.md":     "Implement it.\n",
		"greeter/steps/implement/workdir/config.txt": "Harbor\n",
		"greeter/steps/implement/workdir/setup.sh":   "require-no-file /tests\nwrite /logs/artifacts/marker set-up\nremove /app/setup.sh\n",
		"greeter/steps/implement/solution/solve.sh":  "require-no-file /app/setup.sh\ncopy /app/config.txt /app/greet.sh\nmkdir /var/log\nwrite /var/log/app.log up\n",
		"greeter/steps/implement/tests/test.sh":      "echo-env EXPECTED\necho-env PROJECT\nwrite verifier/reward.txt 0.5\nexit 1\n",
		"greeter/steps/document/instruction.md":      "Document it.\n",
		"greeter/steps/document/solution/solve.sh":   "write /app/README.md # greet.sh\n",
		"greeter/steps/document/tests/test.sh":       "echo-env EXPECTED\njudge /app/README.md \"# greet.sh\"\n",
	}
	for name, body := range changes {
		files["greeter/"+name] = body
	}
	return files
}

// file returns a file of the committed attempt's bundle.
func (l *lab) file(c bundle.Commit, name string) string {
	l.t.Helper()
	return l.read(l.keys.AttemptFiles(c.TaskID, c.TrialIndex, c.Attempt) + name)
}

func TestHarborTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newHarborLab(t, "", greeter(nil))
		l.finish(l.machine().start())
		c := l.commit(0)
		if !c.Outcome.Scored || *c.Grade.Score != 2.5/3 || len(c.Grade.Steps) != 3 || c.Attempt != 1 {
			t.Fatalf("%+v, grade %+v\n%s\n%s", c.Outcome, c.Grade, l.file(c, "logs/agent.log"), l.file(c, "logs/grader.log"))
		}
		if n := l.control.Reached(c.TrialID, "healthy"); n != 1 {
			t.Errorf("the health of the task was asked for %d times", n)
		}
		for name, want := range map[string][]string{
			"logs/agent.log":  {" step 1-scaffold\n", " ann\n", " agent full_internet\n", " step 2-implement\n", " step 3-document\n"},
			"logs/grader.log": {" root\n", " grade no_internet\n", " helpers\n", " hello\n", " greeter\n", " grade ended with exit code 1\n"},
			"env.yaml": {
				"workdir: /app\n", "network_policy: full_internet\n", "origin: built\n", "    grade:\n      policy: no_internet\n",
				"users:\n    agent: ann\n",
			},
			"artifacts/steps/2-implement/marker":               {"set-up"},
			"artifacts/steps/1-scaffold/collected/greet.sh":    {"one"},
			"artifacts/steps/2-implement/collected/greet.sh":   {"Harbor\n"},
			"artifacts/steps/2-implement/collected/app.log":    {"up"},
			"artifacts/steps/3-document/collected/docs/readme": {"# greet.sh"},
			"artifacts.json": {`"path": "/var/log/app.log",`, `"reason": "there is no such file"`},
			"task.yaml":      {"name: scaffold", "name: document"},
		} {
			text := l.file(c, name)
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s has no %q:\n%s", name, w, text)
				}
			}
		}
		if log := l.file(c, "logs/grader.log"); strings.Count(log, " hello\n") != 1 {
			t.Errorf("a variable of one step's grader is there for others:\n%s", log)
		}
	})
}

func TestHarborTaskThatEndsEarly(t *testing.T) {
	for name, c := range map[string]struct {
		changes map[string]string
		score   float64
		steps   int
		flag    string
	}{
		"its first step isn't enough": {map[string]string{"steps/scaffold/solution/solve.sh": "print nothing\n"}, 0, 1, ""},
		"its agent broke it": {
			map[string]string{"steps/scaffold/tests/test.sh": "write verifier/reward.txt 1\nremove /app/greet.sh\n"}, 0.5, 2, trial.FlagHealthcheck,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newHarborLab(t, "", greeter(c.changes))
				l.finish(l.machine().start())
				got := l.commit(0)
				if !got.Outcome.Scored || *got.Grade.Score != c.score || len(got.Grade.Steps) != c.steps {
					t.Errorf("%+v, grade %+v; want the score %v of %d steps", got.Outcome, got.Grade, c.score, c.steps)
				}
				if flags := strings.Join(got.Outcome.Flags, " "); c.flag != "" && !strings.Contains(flags, c.flag) {
					t.Errorf("flags %s, want %s", flags, c.flag)
				}
			})
		})
	}
}

// A sandbox whose health never comes is tried again.
func TestHarborTaskThatIsNeverWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task := greeter(nil)
		task["greeter/task.toml"] = strings.Replace(task["greeter/task.toml"], `"signal healthy"`, `"on-attempt 1 exit 1"`, 1)
		l := newHarborLab(t, "", task)
		l.finish(l.machine().start())
		first := l.attempts(0)[0]
		if c := l.commit(0); !c.Outcome.Scored || c.Attempt != 2 || first.End == nil || first.End.Outcome.Stage != trial.StageHealthcheck {
			t.Errorf("attempt %d: %+v; the first ended with %+v", c.Attempt, c.Outcome, first.End)
		}
	})
}

func TestSecretsOfATask(t *testing.T) {
	const secret = "the-judges-own-key"
	secretTask := greeter(map[string]string{
		"steps/scaffold/tests/test.sh":     "echo-env KEY\nwrite verifier/reward.txt 1\n",
		"steps/scaffold/solution/solve.sh": "write /app/greet.sh one\necho-env KEY\n",
	})
	secretTask["greeter/task.toml"] = strings.Replace(secretTask["greeter/task.toml"], `user = "root"`, "user = \"root\"\nenv = {KEY = \"${JUDGE_API_KEY}\"}", 1)
	t.Run("is there", func(t *testing.T) {
		t.Setenv("JUDGE_API_KEY", secret)
		synctest.Test(t, func(t *testing.T) {
			l := newHarborLab(t, "task_secrets: [JUDGE_API_KEY]\n", secretTask)
			l.finish(l.machine().start())
			c := l.commit(0)
			if log := l.file(c, "logs/grader.log"); !strings.Contains(log, " [redacted]\n") || strings.Contains(log, secret) {
				t.Errorf("the grader doesn't have it, or tells it:\n%s", log)
			}
			if log := l.file(c, "logs/agent.log"); strings.Contains(log, "redacted") {
				t.Errorf("the agent has it:\n%s", log)
			}
		})
	})
	t.Run("is not there", func(t *testing.T) {
		t.Setenv("JUDGE_API_KEY", secret)
		l := newHarborLab(t, "task_secrets: [JUDGE_API_KEY]\nretry: {max_attempts: 1}\n", secretTask)
		t.Setenv("JUDGE_API_KEY", "")
		l.finish(l.machine().start())
		c := l.commit(0)
		if want := "secret JUDGE_API_KEY is not set on worker w1"; c.Outcome.TerminationReason != bundle.ReasonInfraError || !strings.Contains(c.Outcome.Detail, want) {
			t.Errorf("%+v; want %s", c.Outcome, want)
		}
	})
}

// What the tasks of a run ask for is known when its runtime is prepared; what a runtime
// can't do all the same is not tried again.
func TestHarborTaskOnTheWrongWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newHarborLab(t, "", greeter(nil))
		some := scripted.Everything()
		some.Policies = []runtime.NetworkPolicy{runtime.NoInternet}
		m := l.machine(func(c *worker.Config) {
			c.Runtimes = map[string]runtime.Runtime{scripted.Type: scripted.New(scripted.Config{Provider: l.provider, Properties: &some})}
		})
		l.finish(m.start())
		c := l.commit(0)
		if c.Outcome.Scored || c.Attempt != 1 || !strings.Contains(c.Outcome.Detail, "prepare: runtime scripted can't enforce network_policy full_internet") {
			t.Errorf("attempt %d: %+v", c.Attempt, c.Outcome)
		}
	})
}
