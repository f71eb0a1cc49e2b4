// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/subprocess/internal/nest"
)

// traces are what a sandbox with a nest has beyond its directories. They are appended to
// the owner record, so that whoever destroys the sandbox finds them. Programs inside the
// nest don't see the file.
type traces struct {
	Init   nest.Init `json:"init"`
	Groups []string  `json:"groups,omitempty"` // control groups, whether they exist or not
}

func (e *estate) appendTraces(t traces) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	fd, err := openat(e.lock, recordName, unix.O_APPEND|unix.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return writeAndClose(fd, append(data, '\n'))
}

// endOther kills what runs in an estate that isn't ours, or whose owner is dead. Control
// groups are removed only then: a living owner's warden is in them.
func (c claims) endOther(ctx context.Context, e *estate, dead bool) error {
	for _, t := range e.traces {
		if err := t.Init.Kill(ctx); err != nil {
			return err
		}
	}
	if err := c.reap.end(ctx, e.quarry(c.root), nil); err != nil {
		return err
	}
	if !dead {
		return nil
	}
	var errs []error
	for _, t := range e.traces {
		for _, dir := range t.Groups {
			errs = append(errs, nest.RemoveGroup(dir))
		}
	}
	return errors.Join(errs...)
}

// nestSpec says what nest a sandbox needs.
func (e *environment) nestSpec(est *estate, spec runtime.Spec) nest.Spec {
	root := e.rt.cfg.Root
	side := filepath.Join(root, est.Name+sideSuffix)
	n := nest.Spec{
		Name: est.Name + "-" + est.Nonce[:8], View: e.view,
		Dirs: []string{filepath.Join(root, est.Name), side}, Tmp: filepath.Join(side, tmpName),
		Cover:  []string{filepath.Join(side, recordName), filepath.Join(side, keptName)},
		Memory: spec.Resources.Memory, Pids: spec.Resources.Pids, Disk: spec.Resources.Disk, Shm: spec.Resources.Shm,
	}
	online := false
	for _, phase := range phases {
		if network, _ := spec.NetworkFor(phase); network.Policy == runtime.NoInternet {
			n.Offline = true
		} else {
			online = true
		}
	}
	n.AlsoOnline = n.Offline && online
	return n
}

// openNest gives a sandbox its nest.
func (e *environment) openNest(ctx context.Context, s *Sandbox, spec runtime.Spec) error {
	w, err := e.rt.wardens.get(ctx)
	if err != nil {
		return err
	}
	want := e.nestSpec(s.estate, spec)
	var t traces
	if want.Memory > 0 || want.Pids > 0 {
		// Ahead of their making, so that no crash leaves groups that nobody knows of.
		t.Groups = w.Groups(want.Name)
		if err := s.estate.appendTraces(t); err != nil {
			return err
		}
	}
	if s.nest, err = w.Open(ctx, want); err != nil {
		return err
	}
	s.nestSpec = want
	if t.Init, err = s.nest.Init(); err != nil {
		return err
	}
	if err := s.estate.appendTraces(t); err != nil {
		return err
	}
	if want.Disk == 0 {
		return nil
	}
	// The files are where their paths don't lead.
	dirs := s.nest.Dirs()
	if s.work, err = openThrough(dirs[0]); err != nil {
		return err
	}
	s.side, err = openThrough(dirs[1])
	return err
}

// lostNest says that the sandbox is lost where a nest's error means that.
func (s *Sandbox) lostNest(err error) error {
	switch {
	case errors.Is(err, nest.ErrLost):
		return fmt.Errorf("%w: %w", runtime.ErrLost, err)
	case errors.Is(err, nest.ErrClosed):
		return runtime.ErrClosed
	}
	return err
}

// aliveNest asks the nest itself.
func (s *Sandbox) aliveNest() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.cfg.KillTimeout, errBudget)
	defer cancel()
	if err := s.nest.Alive(ctx); err != nil {
		return fmt.Errorf("sandbox %s: %w", s.estate.Name, s.lostNest(err))
	}
	return nil
}
