// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/runtime"
)

// follow reads a log to the attempt's end.
func follow(ctx context.Context, t *worker.Tail) (string, error) {
	defer t.Close()
	var text bytes.Buffer
	for {
		if _, err := io.Copy(&text, t); err != nil {
			return "", err
		}
		if !t.More(ctx) {
			return text.String(), nil
		}
	}
}

func TestARunningAttemptCanBeFollowed(t *testing.T) {
	l := newLab(t, "", task{id: "a", agent: "print first\nblock here\nprint last"})
	m := l.machine().start()
	l.await("here")
	a := m.Attempt(l.rows[0].TrialID)
	if a == nil || a.TaskID != "a" || a.Number != 1 || a.Run != "lab" {
		t.Fatalf("attempt %+v", a)
	}
	if m.Attempt(strings.Repeat("0", 32)) != nil {
		t.Error("there is an attempt of a trial that isn't there")
	}

	// What is there is there at once, and the rest comes as it is written.
	early := a.Tail("logs/agent.log")
	defer early.Close()
	if text, err := io.ReadAll(early); err != nil || !strings.Contains(string(text), "first") || strings.Contains(string(text), "last") {
		t.Errorf("so far: %q, %v", text, err)
	}
	type read struct {
		text string
		err  error
	}
	logs := map[string]chan read{"logs/agent.log": make(chan read, 1), "logs/grader.log": make(chan read, 1), "logs/none.log": make(chan read, 1)}
	for name, got := range logs {
		go func() {
			text, err := follow(t.Context(), a.Tail(name))
			got <- read{text, err}
		}()
	}
	l.control.Release(l.rows[0].TrialID, "here")
	l.finish(m)
	stored := l.keys.AttemptFiles("a", 0, 1)
	for name, got := range logs {
		r := <-got
		if r.err != nil {
			t.Errorf("%s: %v", name, r.err)
		}
		want := ""
		if name != "logs/none.log" {
			want = l.read(stored + name)
		}
		if r.text != want {
			t.Errorf("%s: followed %q, stored %q", name, r.text, want)
		}
	}
	if m.Attempt(l.rows[0].TrialID) != nil {
		t.Error("the attempt is shown although it has ended")
	}
	if _, err := follow(t.Context(), early); err != nil || early.More(t.Context()) {
		t.Errorf("%v, or more of an attempt that has ended", err)
	}
}

func TestFollowingEndsWithItsContext(t *testing.T) {
	l := newLab(t, "", task{id: "a", agent: "block here"})
	m := l.machine().start()
	l.await("here")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := follow(ctx, m.Attempt(l.rows[0].TrialID).Tail("logs/grader.log"))
		done <- err
	}()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	l.control.Release(l.rows[0].TrialID, "here")
	l.finish(m)
}

// Who comes in sees what the agent sees but for its secrets, and leaves a mark.
func TestACommandInARunningAttempt(t *testing.T) {
	l := newLab(t, "", task{id: "a", agent: "block here"}, passes("b"))
	m := l.machine(func(c *worker.Config) { c.Slots = 2 })
	m.start()
	l.await("here")
	l.events.kind(worker.Committed, 1)
	a := m.Attempt(l.rows[0].TrialID)
	var out bytes.Buffer
	exit, err := a.Exec(t.Context(), runtime.Command{Argv: []string{"echo-env TIDEMILL_TASK_ID", "exit 3"}, Stdout: &out})
	if err != nil || exit.Code != 3 || out.String() != "a\n" {
		t.Errorf("exit %+v, %v, printed %q", exit, err, out.String())
	}
	l.control.Release(l.rows[0].TrialID, "here")
	l.finish(m)
	if _, err := a.Exec(t.Context(), runtime.Command{Argv: []string{"print x"}}); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("after the end: %v, want %v", err, runtime.ErrClosed)
	}
	if f := l.commit(0).Outcome.Flags; !slices.Contains(f, trial.FlagEntered) {
		t.Errorf("flags %q, want %s among them", f, trial.FlagEntered)
	}
	if f := l.commit(1).Outcome.Flags; slices.Contains(f, trial.FlagEntered) {
		t.Errorf("flags of a trial that nobody entered: %q", f)
	}
}

func TestNoCommandBeforeThereIsASandbox(t *testing.T) {
	l := newLab(t, "", passes("a"))
	m := l.machine()
	reached, release := make(chan struct{}), make(chan struct{})
	m.rt.open = func(context.Context, *runtime.Spec) error {
		close(reached)
		<-release
		return nil
	}
	m.start()
	<-reached
	if _, err := m.Attempt(l.rows[0].TrialID).Exec(t.Context(), runtime.Command{Argv: []string{"print x"}}); !errors.Is(err, worker.ErrNoSandbox) {
		t.Errorf("error %v, want %v", err, worker.ErrNoSandbox)
	}
	close(release)
	l.finish(m)
	if c := l.commit(0); c.Outcome.Status != bundle.Completed {
		t.Errorf("outcome %+v", c.Outcome)
	}
}
