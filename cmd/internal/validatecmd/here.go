// SPDX-License-Identifier: Apache-2.0

package validatecmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// machine is this one, asked whether it could run a run that is right.
type machine struct {
	run   *manifest.Run
	notes []string // why it could not
	check func(*manifest.Task) error
	rts   map[string]runtime.Runtime
	progs *runtimes.Programs
	dir   string
}

// nobody is the store of runtimes that are only asked what they can do.
const nobody = "00000000-0000-4000-8000-000000000000"

// here looks at what a run says itself. Close the machine.
func here(ctx context.Context, run *manifest.Run) *machine {
	m := &machine{run: run, progs: runtimes.NewPrograms(run)}
	_, missing := trial.SecretsFrom(run.Agent.Secrets)
	for _, name := range missing {
		m.notes = append(m.notes, fmt.Sprintf("agent.secrets: %s is not set in the environment", name))
	}
	if err := m.open(ctx); err != nil {
		m.notes = append(m.notes, err.Error())
	}
	return m
}

func (m *machine) open(ctx context.Context) (err error) {
	if m.dir, err = os.MkdirTemp("", "tidemill-validate-*"); err != nil {
		return err
	}
	m.rts, err = runtimes.New(runtimes.Config{Dir: m.dir, StoreUUID: nobody}, m.run.Runtime.Type)
	if err != nil {
		return err
	}
	if err := runtimes.Admit(ctx, m.rts, m.run, nobody); err != nil {
		return err
	}
	m.check = runtimes.TaskCheck(m.rts, m.run)
	return nil
}

// maxTaskNotes is how many tasks are told that this machine can't run.
const maxTaskNotes = 10

// task notes a task that this machine could not run. It refuses none.
func (m *machine) task(t *manifest.Task) error {
	if err := m.progs.Task(t); err != nil {
		return err
	}
	if m.check == nil || len(m.notes) > maxTaskNotes {
		return nil
	}
	if err := m.check(t); err != nil {
		m.notes = append(m.notes, err.Error())
	}
	return nil
}

func (m *machine) close() error {
	return errors.Join(runtimes.Close(m.rts), os.RemoveAll(m.dir))
}
