// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

// A secret reaches the agent and no file of the bundle, whatever the agent does with it.
func TestSecretsStayOut(t *testing.T) {
	const (
		key = `sk-"quoted"\and<odd>/0123456789`
		pem = "-----BEGIN KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n-----END KEY-----\n"
	)
	// The programs come in files: what a run file says is no secret.
	script := func(t *testing.T, instructions ...string) string {
		path := filepath.Join(t.TempDir(), "script.json")
		body, err := json.Marshal(instructions)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Dir(path)
	}
	more := func(j *job, instruction string) { j.agent("run script.json", instruction) }
	for name, set := range map[string]func(*job){
		"nothing goes wrong": func(*job) {},
		"the agent fails":    func(j *job) { j.grader("judge out.txt other") },
		"provider":           func(j *job) { more(j, "copy agent/detail.json agent/status.json") },
		"status unreadable":  func(j *job) { more(j, "copy spoilt agent/status.json") },
		"no verdict":         func(j *job) { j.grader("copy spoilt verifier/reward.txt") },
		"sandbox lost":       func(j *job) { more(j, "lose-sandbox") },
		"trouble":            func(j *job) { j.grader("run /workdir/trouble") },
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.Run.Run.Capture.Artifacts = []string{"all", "spoilt"}
			j.Run.Run.Capture.OnSuccess = true
			j.Secrets = map[string]string{"API_KEY": key, "PEM": pem}
			j.Task.Steps[0].Setup = &manifest.Program{Command: argv(`print setup has [$API_KEY]`, "env")}
			j.grader("env", "read all", "judge out.txt hello", `append verifier/notes.txt no key here`)
			j.Task.Steps[0].Instruction = "Use " + key
			j.Task.Metadata = map[string]any{"key": []any{pem}}
			j.Task.Files = script(t,
				"write out.txt hello", "echo-env API_KEY", "echo-env PEM", "env",
				`emit sk-"quoted"\`, `emit and<odd>/0123`, "emit 456789\n", // in pieces
				`emit-err -----BEGIN KEY-----`, `emit-err "\nMIIEvQIBADAN\nBgkqhkiG9"`, `emit-err "w0B\n-----END KEY-----"`,
				`write all `+quoted(key+" and "+pem),
				`write agent/detail.json `+quoted(`{"termination_reason":"rate_limit","detail":"refused sk-\"quoted\"\\and\u003codd\u003e/0123456789"}`),
				`write spoilt `+quoted(key),
				`mkdir `+quoted(`artifacts/dir-`+key),
				`write `+quoted(`artifacts/dir-`+key+`/file`)+` x`,
				`fifo `+quoted(`artifacts/dir-`+key+`/pipe`),
				`symlink `+quoted(key)+` artifacts/link`,
				`write agent/trajectory.json `+quoted(`{"schema_version":"ATIF-v1.4","steps":[{"source":"agent","message":"I use sk-\"quoted\"\\and<odd>/0123456789",`+
					`"tool_calls":[{"tool_call_id":"1","function_name":"sh","arguments":{"sk-\"quoted\"\\and<odd>/0123456789":["-----BEGIN KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n-----END KEY-----"]}}]}]}`),
				`log web `+quoted("GET /?key="+key),
				`write trouble `+quoted(`error `+quoted("can't reach http://x/"+key)),
			)
			j.agent("run script.json")
			set(j)
			got := j.run(t, t.Context())
			if name == "nothing goes wrong" {
				if !got.Grade.BinaryPass || *got.Metrics.AgentExitCode != 0 {
					t.Fatalf("%+v\n%s", got.Outcome, got.files["logs/agent.log"])
				}
				for _, file := range []string{"trajectory.yaml", "services/web.log", "task.yaml", "artifacts.json", "artifacts/workdir/all"} {
					if !strings.Contains(got.files[file], "[redacted]") {
						t.Errorf("nothing was redacted in %s:\n%s", file, got.files[file])
					}
				}
				if n := strings.Count(got.files["logs/agent.log"], "[redacted]"); n < 4 {
					t.Errorf("%d secrets in the agent's output, want at least 4:\n%s", n, got.files["logs/agent.log"])
				}
				if grader := got.files["logs/grader.log"]; strings.Contains(grader, "API_KEY") || strings.Contains(grader, "PEM=") {
					t.Errorf("the grader got the agent's secrets:\n%s", grader)
				}
			}
			report := got.Outcome.Detail + got.Grade.Reasons + got.Metrics.ErrorReason
			for _, secret := range []string{key, "0123456789", "MIIEvQIBADAN", "BgkqhkiG9w0B"} {
				for file, body := range got.files {
					if strings.Contains(body, secret) || strings.Contains(file, secret) {
						t.Errorf("%s has %q in it:\n%s", file, secret, body)
					}
				}
				if strings.Contains(report, secret) {
					t.Errorf("the report has %q in it: %s", secret, report)
				}
			}
		})
	}
}

// quoted is a text as an instruction's argument.
func quoted(s string) string { return strconv.Quote(s) }

// A secret that is one of our own words doesn't spoil the records.
func TestSecretLikeOurWords(t *testing.T) {
	j := newJob(t)
	j.Secrets = map[string]string{"A": "score", "B": "false", "C": "completed", "D": "latency_total_s", "E": "demo/0"}
	if got := j.run(t, t.Context()); !got.Grade.BinaryPass { // run compares the records with the report
		t.Errorf("%+v", got.Outcome)
	}
}

// Who sees what of a task: the agent never the whole row, tests or solution.
func TestWhoSeesWhat(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{
		"tests/check.txt": "the tests", "solution/answer.txt": "hello", "files/given.txt": "given", "agentfiles/run.txt": "mine",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	task := func(t *testing.T) *job {
		j := newJob(t)
		j.Secrets = map[string]string{"API_KEY": "secret-of-the-agent"}
		j.Run.Run.Agent.Env = map[string]string{"MODEL": "m-1", "TIDEMILL_TRIAL_ID": "forged"}
		j.AgentFiles, j.AgentFilesName = filepath.Join(dir, "agentfiles"), "agent"
		j.env("CHANNEL", "beta")
		j.Task.Files = filepath.Join(dir, "files")
		step := &j.Task.Steps[0]
		step.AgentRow, step.Row = []byte(`{"prompt":"p"}`), []byte(`{"prompt":"p","answer":"hello"}`)
		step.Oracle = &manifest.Program{
			Command: argv("read $TIDEMILL_ROW_FILE", "read $TIDEMILL_SOLUTION_DIR/answer.txt", "copy $TIDEMILL_SOLUTION_DIR/answer.txt out.txt", "echo-env API_KEY"),
			Files:   filepath.Join(dir, "solution"), Env: map[string]string{"ORACLE": "yes"},
		}
		step.Grade = manifest.Program{
			Command: argv("read $TIDEMILL_ROW_FILE", "read $TIDEMILL_TESTS_DIR/check.txt", "read given.txt", "echo-env API_KEY", "echo-env MODEL", "echo-env CHANNEL", "judge out.txt hello"),
			Files:   filepath.Join(dir, "tests"),
		}
		return j
	}
	const full, public = `{"prompt":"p","answer":"hello"}`, `{"prompt":"p"}`
	t.Run("agent", func(t *testing.T) {
		j := task(t)
		j.agent("read $TIDEMILL_ROW_FILE", "read $TIDEMILL_INSTRUCTION_FILE", "read given.txt", "read ./agent/run.txt", "echo-env MODEL", "echo-env API_KEY",
			"echo-env TIDEMILL_TRIAL_ID", "print ${TIDEMILL_TRIAL_INDEX} ${HOME}", "echo-env TIDEMILL_TESTS_DIR", "echo-env TIDEMILL_SOLUTION_DIR",
			"require-no-file tests/check.txt", "require-no-file tests/tidemill-row.json", "require-no-file solution/answer.txt", "require-no-file solution/tidemill-row.json")
		got := j.run(t, t.Context())
		if code := got.Metrics.AgentExitCode; code == nil || *code != 0 {
			t.Errorf("the agent met what it should not, or missed something:\n%s", got.files["logs/agent.log"])
		}
		want := public + "Say hello in out.txt.givenminem-1"
		log := strings.Join(lines(got.files["logs/agent.log"]), "\n")
		if !strings.HasPrefix(log, want+"\n[redacted]\n"+trialID+"\n2 ${HOME}") {
			t.Errorf("the agent saw:\n%s", log)
		}
		if log := strings.Join(lines(got.files["logs/grader.log"]), "\n"); !strings.HasPrefix(log, full+"the testsgiven") || strings.Contains(log, "m-1") {
			t.Errorf("the grader saw:\n%s", log)
		}
		for file, body := range got.files {
			if strings.Contains(body, `"answer":"hello"`) && file != "logs/grader.log" {
				t.Errorf("%s tells the answer", file)
			}
		}
	})
	t.Run("oracle", func(t *testing.T) {
		j := task(t)
		j.Run.Run.Agent = manifest.Agent{Name: manifest.OracleAgent}
		got := j.run(t, t.Context())
		if log := lines(got.files["logs/agent.log"]); log[0] != full+"hello" || !got.Grade.BinaryPass {
			t.Errorf("the oracle saw %q: %+v", log, got.Outcome)
		}
	})
	t.Run("nop", func(t *testing.T) {
		j := task(t)
		j.Run.Run.Agent = manifest.Agent{Name: manifest.NopAgent}
		got := j.run(t, t.Context())
		if got.Ending != trial.Graded || *got.Grade.Score != 0 || got.Metrics.AgentExitCode != nil {
			t.Errorf("%+v, grade %+v", got.Outcome, got.Grade)
		}
	})
}
