// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
)

// needy is a lab whose agent needs SUMS_KEY.
func needy(t *testing.T, extra string) *lab {
	return newLabBy(t, func(l *lab) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "pack", "rows.jsonl"), `{"id":"one","agent":"print hello","grade":"write verifier/reward.txt 1"}`+"\n")
		write(t, filepath.Join(dir, "pack", "pack.yaml"), `version: 1
kind: dataset
name: lab
dataset: {path: rows.jsonl, id_field: id}
agent_fields: [agent]
instruction: do it
grade: {command: ["run tests/tidemill-row.json#grade"]}
`)
		l.plan(dir, `version: 1
name: lab
packs: [pack]
agent: {name: script, command: ["run input/row.json#agent"], secrets: [SUMS_KEY]}
runtime: {type: scripted}
network_policy: no_internet
`+extra)
	})
}

func others(c *worker.Config) { c.Others = true }

// listed is a worker's queue with the roster that it has.
type listed struct {
	*faultyQueue
	queue.Roster
}

// refused is what the only worker on the roster refuses.
func refused(t *testing.T, q queue.Queue) map[string]string {
	t.Helper()
	list, err := q.(queue.Roster).Workers(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%d workers, %v", len(list), err)
	}
	return list[0].Refuses
}

// A worker without the agent's secret leaves the run to one that has it: no attempt is
// begun, nothing is charged, and it doesn't ask for the same again and again.
func TestMissingSecretIsLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := needy(t, "retry: {max_attempts: 1}\n")
		q := l.connect()
		poor := l.machine(others, func(c *worker.Config) { c.Slots = 2 })
		poor.Queue = listed{poor.queue, q.(queue.Roster)}
		poor.start()
		if e := l.events.kind(worker.Retrying, 1); e.Why != "this worker has no SUMS_KEY" {
			t.Errorf("event %+v", e)
		}
		time.Sleep(9 * time.Minute) // in the bubble
		if n := poor.queue.said("hand back"); n > poor.Slots {
			t.Errorf("%d hand-backs by %d slots", n, poor.Slots)
		}
		if diff := cmp.Diff(map[string]string{"lab": "has no SUMS_KEY"}, refused(t, q)); diff != "" {
			t.Errorf("refused (-want +got)\n%s", diff)
		}
		if as := l.attempts(0); len(as) > 0 {
			t.Errorf("%d attempts were begun", len(as))
		}
		t.Setenv("SUMS_KEY", "1234567890")
		rich := l.machine(others).start()
		l.events.kind(worker.Committed, 1)
		l.finish(poor, rich)
		if c := l.commit(0); c.Worker != "w2" || c.Attempt != 1 || c.Outcome.Status != bundle.Completed {
			t.Errorf("commit %+v", c)
		}
	})
}

// Where nobody else is there, it is a failure like any other.
func TestMissingSecretFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := needy(t, "retry: {max_attempts: 2, min_backoff: 10ms, max_backoff: 10ms}\n")
		m := l.machine().start()
		l.events.kind(worker.Committed, 1)
		l.finish(m)
		c := l.commit(0)
		if c.Attempt != 2 || c.Outcome.FailureClass != bundle.InfraFailure || !strings.Contains(c.Outcome.Detail, "secret SUMS_KEY is not set on worker w1") {
			t.Errorf("commit %+v", c)
		}
	})
}

// A refusal is not for ever: the run's other trials may need less.
func TestRefusalEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := needy(t, "")
		m := l.machine(others).start()
		l.events.kind(worker.Retrying, 1)
		t.Setenv("SUMS_KEY", "1234567890")
		l.events.kind(worker.Committed, 1) // after minutes, in the bubble
		l.finish(m)
		if as := l.attempts(0); len(as) != 1 {
			t.Errorf("%d attempts", len(as))
		}
	})
}

// The same holds for what a task needs, which is found out when an attempt is begun.
func TestMissingTaskSecretIsLeftToOthers(t *testing.T) {
	files := greeter(map[string]string{})
	files["greeter/task.toml"] = strings.Replace(files["greeter/task.toml"], `user = "root"`, "user = \"root\"\nenv = {KEY = \"${JUDGE_API_KEY}\"}", 1)
	synctest.Test(t, func(t *testing.T) {
		t.Setenv("JUDGE_API_KEY", "the-judges-own-key")
		l := newHarborLab(t, "task_secrets: [JUDGE_API_KEY]\nretry: {max_attempts: 1}\n", files)
		t.Setenv("JUDGE_API_KEY", "")
		poor := l.machine(others).start()
		e := l.events.kind(worker.Dropped, 1)
		if want := "left to other workers: secret JUDGE_API_KEY is not set on worker w1; set it in the worker's environment"; e.Why != want {
			t.Errorf("dropped for %q, want %q", e.Why, want)
		}
		time.Sleep(9 * time.Minute) // in the bubble
		if as := l.attempts(0); len(as) != 1 || as[0].End == nil || as[0].End.Charged || as[0].End.Outcome.Status != bundle.Cancelled {
			t.Errorf("attempts %+v", as)
		}
		if !l.sealed(l.rows[0], 1) {
			t.Error("the attempt left no evidence")
		}
		t.Setenv("JUDGE_API_KEY", "the-judges-own-key")
		rich := l.machine(others).start()
		l.events.kind(worker.Committed, 1)
		l.finish(poor, rich)
		if c := l.commit(0); c.Worker != "w2" || c.Attempt != 2 {
			t.Errorf("commit %+v", c)
		}
	})
}
