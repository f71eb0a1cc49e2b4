// SPDX-License-Identifier: Apache-2.0

// Package kept has the sandboxes that were left in a data directory for people to look
// into.
package kept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/runtime"
)

// Sandbox is one that was kept.
type Sandbox struct {
	TrialID    string            `json:"trial_id"`
	RunID      string            `json:"run_id"`
	TaskID     string            `json:"task_id"`
	TrialIndex int               `json:"trial_index"`
	Handle     runtime.Handle    `json:"handle"`
	ExpiresAt  time.Time         `json:"expires_at"`
	Workdir    string            `json:"workdir,omitempty"`
	Env        map[string]string `json:"env"` // of the agent, without its secrets
}

// List is what was kept in a data directory. Close it.
type List struct {
	Sandboxes []Sandbox // the newest first
	dir       string
	runtimes  map[string]runtime.Runtime
}

// Open lists what was kept and is still there. Stores that are no directory have nothing.
func Open(ctx context.Context, store bundle.Store, where string) (_ *List, err error) {
	dir, ok := stores.Directory(where)
	if !ok {
		return &List{}, nil
	}
	l := &List{dir: dir}
	notes, err := l.notes()
	if err != nil || len(notes) == 0 {
		return l, err
	}
	id, err := bundle.ReadIdentity(ctx, store)
	if err != nil {
		return nil, err
	}
	var types []string
	for _, s := range notes {
		if slices.Contains(runtimes.Types(), s.Handle.Runtime) {
			types = append(types, s.Handle.Runtime)
		}
	}
	work, err := filepath.Abs(local.WorkOf(dir))
	if err != nil {
		return nil, err
	}
	if l.runtimes, err = runtimes.New(runtimes.Config{Dir: work, StoreUUID: id.StoreUUID, Hide: []string{dir}}, types...); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if err := l.look(ctx, notes); err != nil {
		return nil, err
	}
	l.forget(notes)
	slices.SortFunc(l.Sandboxes, func(a, b Sandbox) int { return b.ExpiresAt.Compare(a.ExpiresAt) })
	return l, nil
}

// look finds those of the notes that are still there.
func (l *List) look(ctx context.Context, notes []Sandbox) error {
	for _, rt := range l.runtimes {
		there, err := rt.List(ctx)
		if err != nil {
			return err
		}
		for _, r := range there {
			i := slices.IndexFunc(notes, func(s Sandbox) bool { return s.Handle == r.Handle })
			if r.Kept && i >= 0 {
				l.Sandboxes = append(l.Sandboxes, notes[i])
			}
		}
	}
	return nil
}

// forget removes the notes of what was swept: nobody needs to know of it any more.
func (l *List) forget(notes []Sandbox) {
	for _, n := range notes {
		gone := !slices.ContainsFunc(l.Sandboxes, func(s Sandbox) bool { return s.Handle == n.Handle })
		if gone && time.Now().After(n.ExpiresAt) {
			_ = os.Remove(notePath(l.dir, n.TrialID))
		}
	}
}

// notes reads what [Note] wrote.
func (l *List) notes() ([]Sandbox, error) {
	entries, err := os.ReadDir(local.KeptOf(l.dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("kept sandboxes: %w", err)
	}
	var list []Sandbox
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(local.KeptOf(l.dir), e.Name()))
		if err != nil {
			return nil, fmt.Errorf("kept sandboxes: %w", err)
		}
		var s Sandbox
		if err := json.Unmarshal(body, &s); err != nil || s.TrialID == "" {
			continue // not one of ours
		}
		list = append(list, s)
	}
	return list, nil
}

func notePath(dir, trialID string) string { return filepath.Join(local.KeptOf(dir), trialID+".json") }

// Note writes down that a sandbox is kept in a data directory.
func Note(dir string, s Sandbox) error {
	body, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(local.KeptOf(dir), 0o700); err != nil {
		return fmt.Errorf("kept sandbox: %w", err)
	}
	path := notePath(dir, s.TrialID)
	if err := os.WriteFile(path+".new", append(body, '\n'), 0o600); err != nil {
		return fmt.Errorf("kept sandbox: %w", err)
	}
	return os.Rename(path+".new", path)
}

// Exec runs a command in a kept sandbox, which stays. One that somebody is in is a
// [runtime.ConflictError].
func (l *List) Exec(ctx context.Context, s Sandbox, cmd runtime.Command) (exit runtime.Exit, err error) {
	attacher, ok := l.runtimes[s.Handle.Runtime].(runtime.Attacher)
	if !ok {
		return exit, fmt.Errorf("runtime %s can't go on with a kept sandbox", s.Handle.Runtime)
	}
	box, err := attacher.Attach(ctx, s.Handle)
	if err != nil {
		return exit, err
	}
	keeper, ok := box.(runtime.Keeper)
	if !ok {
		return exit, errors.Join(fmt.Errorf("runtime %s can't keep a sandbox", s.Handle.Runtime), box.Close(ctx))
	}
	defer func() { err = errors.Join(err, keeper.Keep(context.WithoutCancel(ctx))) }()
	if err := box.SetPhase(ctx, runtime.Agent); err != nil {
		return exit, err
	}
	cmd.Env = s.Env
	return box.Exec(ctx, cmd)
}

// Remove removes a kept sandbox. One that somebody is in goes too: whoever removes it
// says so by name.
func (l *List) Remove(ctx context.Context, s Sandbox) error {
	if err := l.runtimes[s.Handle.Runtime].Destroy(ctx, s.Handle); err != nil {
		return err
	}
	if err := os.Remove(notePath(l.dir, s.TrialID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("kept sandbox: %w", err)
	}
	return nil
}

// Close gives the runtimes back.
func (l *List) Close() error { return runtimes.Close(l.runtimes) }
