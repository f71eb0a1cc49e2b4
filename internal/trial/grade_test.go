// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

// What a grader may leave where its verdict belongs. Without a number that counts there
// is no score, least of all 0, and what it left stays in the bundle.
func TestVerdictFiles(t *testing.T) {
	for name, c := range map[string]struct {
		grader  []string
		primary string
		// ignoreCode: the task says that the grader's exit code means nothing.
		ignoreCode bool
		score      float64 // with detail empty
		rewards    map[string]float64
		detail     string
		kept       string // in the bundle
	}{
		"text": {grader: argv("write verifier/reward.txt 0.25"), score: 0.25, rewards: map[string]float64{"reward": 0.25}},
		"text, though the tests failed, where the code means nothing": {
			grader: argv("write verifier/reward.txt 0", "exit 1"), ignoreCode: true, rewards: map[string]float64{"reward": 0},
		},
		"text, and then a crash": {
			grader: argv("write verifier/reward.txt 1", "exit 1"), kept: "logs/verifier/reward.txt",
			detail: "the grader crashed after it left a verdict in reward.txt, which doesn't count; the grader ended with exit code 1",
		},
		"object, and then a crash": {
			grader: argv(`write verifier/reward.json {"reward":1}`, "exit 7"), kept: "logs/verifier/reward.json",
			detail: "the grader crashed after it left a verdict in reward.json, which doesn't count; the grader ended with exit code 7",
		},
		"bad text, where the code means nothing": {
			grader: argv("write verifier/reward.txt one", "exit 1"), ignoreCode: true, detail: `reward.txt: "one" is not a number`,
		},
		"nothing, where the code means nothing": {
			grader: argv("exit 1"), ignoreCode: true, detail: "neither reward.txt nor reward.json in $TIDEMILL_LOGS_DIR/verifier; the grader ended with exit code 1",
		},
		"killed, where the code means nothing": {
			grader: argv("write verifier/reward.txt 1", "kill 9"), ignoreCode: true, detail: "grader was killed by SIGKILL",
		},
		"in the workdir": {
			grader: argv("write ./reward.json {}"),
			detail: "neither reward.txt nor reward.json in $TIDEMILL_LOGS_DIR/verifier; there is a reward.json in the workdir, where it doesn't count",
		},
		"in the workdir, a directory": {
			grader: argv("mkdir ./reward.txt"), detail: "there is a reward.txt in the workdir",
		},
		"in the logs": {
			grader: argv("write /logs/reward.txt 1"), detail: "there is a reward.txt in $TIDEMILL_LOGS_DIR, where it doesn't count",
		},
		"text, though something used up memory below it": {
			grader: argv("write verifier/reward.txt 0", "fork-bomb"), ignoreCode: true, rewards: map[string]float64{"reward": 0},
		},
		"object": {
			grader: argv(`write verifier/reward.json {"reward":0.5,"style":1}`), score: 0.5,
			rewards: map[string]float64{"reward": 0.5, "style": 1},
		},
		"object, primary named": {
			grader: argv(`write verifier/reward.json {"reward":0.5,"style":1}`), primary: "style", score: 1,
			rewards: map[string]float64{"reward": 0.5, "style": 1},
		},
		"both: the text counts": {
			grader: argv("write verifier/reward.txt 1", `write verifier/reward.json {"style":0}`), score: 1,
			rewards: map[string]float64{"reward": 1}, kept: "logs/verifier/reward.json",
		},
		"both, the text being bad: no way back to the other": {
			grader: argv("write verifier/reward.txt one", `write verifier/reward.json {"reward":1}`),
			detail: `reward.txt: "one" is not a number`, kept: "logs/verifier/reward.txt",
		},
		"primary missing": {
			grader: argv(`write verifier/reward.json {"a":1}`), primary: "b",
			detail: `no reward named "b"`, kept: "logs/verifier/reward.json",
		},
		"several and no primary": {
			grader: argv(`write verifier/reward.json {"a":1,"b":1}`),
			detail: "the grader gave a, b and none is called reward", kept: "logs/verifier/reward.json",
		},
		"empty":                  {grader: argv("write verifier/reward.txt", "exit 2"), detail: "reward.txt holds 0 words; want one finite number; the grader ended with exit code 2"},
		"nothing, out of memory": {grader: argv("fork-bomb"), detail: "the grader left neither reward.txt nor reward.json in $TIDEMILL_LOGS_DIR/verifier; the grader used up its pids"},
		"symlink":                {grader: argv("write tests/one 1", "symlink /tests/one verifier/reward.txt"), detail: "reward.txt: want a regular file, not a symlink"},
		"symlinked directory": {
			grader: argv("mkdir ./fake", "write fake/reward.txt 1", "remove /logs/verifier", "symlink /workdir/fake /logs/verifier"),
			detail: "reward.txt: want a regular file",
		},
		"directory":         {grader: argv("mkdir verifier/reward.txt"), detail: "reward.txt: want a regular file, not a directory"},
		"directory, object": {grader: argv("mkdir verifier/reward.json"), detail: "reward.json: want a regular file, not a directory"},
		"fifo":              {grader: argv("fifo verifier/reward.txt"), detail: "reward.txt: want a regular file; it is left out: fifo"},
		"as large as may be": {
			grader: argv("write verifier/reward.txt 1" + strings.Repeat(" ", 64<<10-1)), score: 1, rewards: map[string]float64{"reward": 1},
		},
		"larger than the limit": {
			grader: argv("write verifier/reward.txt 1" + strings.Repeat(" ", 64<<10)), detail: "reward.txt: want a regular file; it is left out: larger than the limit of 65536 bytes",
			kept: "logs/verifier/reward.txt",
		},
		"gigabytes": {grader: argv("big-file verifier/reward.txt 5000000000"), detail: "reward.txt: want a regular file; it is left out: larger than the limit"},
		"no place":  {grader: argv("remove /logs/verifier"), detail: "the grader left neither reward.txt nor reward.json"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.grader(c.grader...)
			j.Task.Steps[0].IgnoreExitCode = c.ignoreCode
			j.Run.Run.Grade.Primary = c.primary
			j.Run.Run.Grade.PassThreshold = 0.5
			got := j.run(t, t.Context())
			if _, ok := got.files[c.kept]; c.kept != "" && !ok {
				t.Errorf("%s is not in the bundle", c.kept)
			}
			if c.detail != "" {
				if got.Ending != trial.GraderFailed || got.Grade.Score != nil || got.Grade.Rewards != nil || !strings.Contains(got.Outcome.Detail, c.detail) {
					t.Errorf("%s: %s, grade %+v; want grader_failed, %s", got.Ending, got.Outcome.Detail, got.Grade, c.detail)
				}
				return
			}
			if got.Ending != trial.Graded {
				t.Fatalf("%s: %s", got.Ending, got.Outcome.Detail)
			}
			equal(t, "score", c.score, *got.Grade.Score)
			equal(t, "rewards", c.rewards, got.Grade.Rewards)
			equal(t, "pass", c.score >= 0.5, got.Grade.BinaryPass)
		})
	}
}

// An agent that fails tries to get a verdict of its own counted.
func TestForgedVerdicts(t *testing.T) {
	honest := argv("print judging", "judge out.txt hello")
	for name, c := range map[string]struct {
		agent  []string
		grader []string
		want   float64
	}{
		"in the workdir":             {agent: argv("write reward.txt 1", `write reward.json {"reward":1}`), grader: argv("print nothing"), want: -1},
		"in its place, before":       {agent: argv("mkdir verifier/", "write verifier/reward.txt 1"), grader: argv("print nothing"), want: -1},
		"in its place, overwritten":  {agent: argv("mkdir verifier/", "write verifier/reward.txt 1"), grader: honest},
		"the other file":             {agent: argv("mkdir verifier/", `write verifier/reward.json {"reward":1}`, "write verifier/reward.txt 1"), grader: honest},
		"a symlink for the file":     {agent: argv("mkdir verifier/", "write mine 1", "symlink /workdir/mine verifier/reward.txt"), grader: argv("print nothing"), want: -1},
		"a symlink for the place":    {agent: argv("mkdir ./mine", "write mine/reward.txt 1", "symlink /workdir/mine /logs/verifier"), grader: argv("print nothing"), want: -1},
		"a symlink for all logs":     {agent: argv("mkdir ./mine/verifier", "write mine/verifier/reward.txt 1", "remove /logs", "symlink /workdir/mine /logs"), grader: honest},
		"tests of its own":           {agent: argv("mkdir tests/", "write tests/answer hello"), grader: argv("require-no-file tests/answer", "judge out.txt hello")},
		"a symlink for the tests":    {agent: argv("mkdir ./mine", "write mine/answer x", "symlink /workdir/mine /tests"), grader: argv("require-no-file tests/answer", "write tests/new x", "require-no-file /workdir/mine/new", "judge out.txt hello")},
		"a writer in the background": {agent: argv(`background ["block go","write verifier/reward.txt 1","signal wrote"]`), grader: argv("judge out.txt hello", "signal graded", "block done")},
		"a daemon":                   {agent: argv("leave-daemon pid"), grader: argv("alive pid", "judge out.txt hello")},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.agent(c.agent...)
			j.grader(c.grader...)
			j.at(t, "graded", func() {
				j.rt.Control().Release(trialID, "go") // for whoever is alive
				if len(j.provider.Left()) != 1 || !strings.Contains(j.provider.Left()[0], "with 1 processes") {
					t.Errorf("alive beside the grader: %q", j.provider.Left())
				}
				j.rt.Control().Release(trialID, "done")
			})
			got := j.run(t, t.Context())
			if c.want < 0 {
				if got.Ending != trial.GraderFailed || got.Grade.Score != nil {
					t.Errorf("%s, grade %+v; want no verdict", got.Ending, got.Grade)
				}
				return
			}
			if got.Ending != trial.Graded || *got.Grade.Score != c.want {
				t.Errorf("%s: %s, grade %+v; want the score %v", got.Ending, got.Outcome.Detail, got.Grade, c.want)
			}
			if n := j.rt.Control().Reached(trialID, "wrote"); n > 0 {
				t.Error("a process of the agent's was alive after grading began")
			}
		})
	}
}

// Where the agent's processes are kept, users keep them from the verdict.
func TestForgedByKeptProcess(t *testing.T) {
	j := newJob(t)
	j.Task.AgentProcesses = "keep"
	j.Task.Users = map[string]string{"grade": "root", "agent": "agent"}
	j.agent(`background ["block go","write verifier/reward.txt 1","signal wrote","hold"]`)
	j.grader("judge out.txt hello", "signal graded", "block tried")
	j.at(t, "graded", func() {
		control := j.rt.Control()
		control.Release(trialID, "go")
		// It ends when it is refused; else it says that it wrote.
		for control.Reached(trialID, "wrote") == 0 && !strings.Contains(j.provider.Left()[0], "with 1 processes") {
			goruntime.Gosched()
		}
		control.Release(trialID, "tried")
	})
	got := j.run(t, t.Context())
	if got.Ending != trial.Graded || *got.Grade.Score != 0 || j.rt.Control().Reached(trialID, "wrote") > 0 {
		t.Errorf("%s, grade %+v", got.Ending, got.Grade)
	}
	equal(t, "flags", []string{trial.FlagProcessesKept}, got.Outcome.Flags)
}

// Whether the agent's processes are alive while the grader works, and what the outcome
// says of it.
func TestProcessesEndOrStay(t *testing.T) {
	for _, c := range []struct{ run, task, want string }{
		{"", "", "dead"},
		{"", "end", "dead"},
		{"", "keep", "alive"},
		{"end", "keep", "dead"},
		{"keep", "end", "alive"},
	} {
		t.Run(c.run+"/"+c.task, func(t *testing.T) {
			j := newJob(t)
			j.Run.Run.AgentProcesses, j.Task.AgentProcesses = c.run, c.task
			j.agent("write out.txt hello", "leave-daemon server.pid")
			j.grader("alive server.pid", "judge out.txt hello")
			got := j.run(t, t.Context())
			if log := got.files["logs/grader.log"]; !strings.HasSuffix(log, " "+c.want+"\n") {
				t.Errorf("grader saw %q, want %s", log, c.want)
			}
			var flags []string
			if c.want == "alive" {
				flags = []string{trial.FlagProcessesKept}
			}
			equal(t, "flags", flags, got.Outcome.Flags)
		})
	}
}

// Who runs as whom, under which policy, and when.
func TestUsersAndPhases(t *testing.T) {
	j := newJob(t)
	j.Task.Users = map[string]string{"setup": "root", "agent": "ann", "grade": "root"}
	j.Task.Steps[0].Setup = &manifest.Program{Command: argv("whoami", "phase")}
	j.agent("whoami", "phase", "write out.txt hello")
	j.Task.Steps[0].Grade = manifest.Program{Command: argv("whoami", "phase", "judge out.txt hello"), User: "judge"}
	got := j.run(t, t.Context())
	equal(t, "agent.log", []string{"root", "setup no_internet", "ann", "agent no_internet"}, lines(got.files["logs/agent.log"]))
	equal(t, "grader.log", []string{"judge", "grade no_internet"}, lines(got.files["logs/grader.log"]))
	if !got.Grade.BinaryPass {
		t.Errorf("%+v", got.Outcome)
	}
	if want := int64(len("ann\nagent no_internet\n")); got.Metrics.AgentOutputBytes != want {
		t.Errorf("the agent's output has %d bytes, want %d: that of setup is not its own", got.Metrics.AgentOutputBytes, want)
	}
}

// lines takes the frames of a log away.
func lines(log string) []string {
	var out []string
	for line := range strings.Lines(log) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line[3:]), " "); ok {
			out = append(out, text)
		}
	}
	return out
}
