// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/runtime"
)

// A panic in a runtime is the trouble of the attempt that met it, and of nobody else.
func TestPanicStaysInItsAttempt(t *testing.T) {
	bad := func(l runtime.Labels) bool { return l.Task == "bad" && l.Attempt == 1 }
	for name, arrange := range map[string]func(m *machine){
		"while opening": func(m *machine) {
			m.rt.open = func(_ context.Context, spec *runtime.Spec) error {
				if bad(spec.Labels) {
					panic("index out of range [3]")
				}
				return nil
			}
		},
		"in a sandbox": func(m *machine) {
			m.rt.exec = func(c runtime.Command) {
				if c.Env["TIDEMILL_TASK_ID"] == "bad" && c.Env["TIDEMILL_ATTEMPT"] == "1" && strings.Contains(c.Argv[0], "grade") {
					panic("index out of range [3]")
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", task{id: "good", agent: "block good"}, passes("bad"))
				m := l.machine(func(c *worker.Config) { c.Slots = 2 })
				arrange(m)
				m.start()
				l.events.kind(worker.Committed, 1) // bad, at its second attempt
				l.control.Release("", "good")
				l.finish(m)
				if c := l.commit(0); c.Attempt != 1 || !c.Outcome.Scored {
					t.Errorf("the neighbour's commit: %+v", c)
				}
				if c := l.commit(1); c.Attempt != 2 || !c.Outcome.Scored {
					t.Errorf("commit %+v", c)
				}
				l.checkRetries(1, 2)
				o := l.attempts(1)[0].End.Outcome
				if o.TerminationReason != bundle.ReasonInfraError || !strings.Contains(o.Detail, "index out of range [3]") {
					t.Errorf("outcome %+v", o)
				}
				files := l.keys.AttemptFiles("bad", 0, 1)
				if stack := l.read(files + "logs/panic.txt"); !strings.Contains(stack, "panic_test.go") {
					t.Errorf("the stack is not in the bundle:\n%s", stack)
				}
				for _, file := range []string{"task.yaml", "metrics.yaml", "grade.yaml", "env.yaml", "trajectory.yaml"} {
					l.read(files + file)
				}
				if name == "in a sandbox" && !strings.Contains(l.read(files+"partial/logs/agent.log"), "hello") {
					t.Error("the agent's log is not kept")
				}
			})
		})
	}
}

func TestPanicWhilePreparing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine()
		m.rt.prepare = func(context.Context) error {
			if m.rt.prepared == 1 {
				panic("nil map")
			}
			return nil
		}
		l.finish(m.start())
		l.checkRetries(0, 2)
		if stack := l.read(l.keys.AttemptFiles("a", 0, 1) + "logs/panic.txt"); !strings.Contains(stack, "nil map") {
			t.Errorf("stack:\n%s", stack)
		}
	})
}

// A panic of our own, outside of any attempt, leaves the trial to the next delivery.
func TestPanicInTheStore(t *testing.T) {
	for _, key := range []string{"/commits/", "/attempts/", "/index.json", "run.yaml", "plan/", "packs/"} {
		t.Run(strings.Trim(key, "/"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", passes("a"), passes("b"))
				m := l.machine(func(c *worker.Config) { c.UploadParallel = 1 })
				m.store.Inject(bundletest.Fault{Key: key, Times: 1, Hit: func(bundletest.Op, string) { panic("odd answer") }})
				l.finish(m.start())
				l.commit(0)
				l.commit(1)
			})
		})
	}
}
