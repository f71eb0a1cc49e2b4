// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/subprocess/internal/nest"
)

// Runtime provides sandboxes that are directories of this machine.
type Runtime struct {
	cfg    Config
	claims claims
	closed atomic.Bool

	wardens wardens
	hide    []string           // from sandboxes, without symlinks
	probed  func() nest.Report // what this machine allows, found out when it is first asked
	viewing sync.Mutex
	views   map[string]*nest.View // by what else is visible
}

var _ runtime.Runtime = (*Runtime)(nil)

// New checks the configuration and makes the root where it is missing. What the machine
// allows is found out when it is first asked for, unless isolation is [Required].
func New(cfg Config) (*Runtime, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	root, err := prepareRoot(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("subprocess root %s: %w", cfg.Root, err)
	}
	cfg.Root = root
	rt := &Runtime{
		cfg:    cfg,
		claims: claims{root: root, store: cfg.Store, reap: newReaper(root, cfg.KillTimeout), spares: &spares{root: root}},
	}
	// To look at the processes once shows that it can be done.
	if _, err := rt.claims.reap.table.find(quarry{mark: markVar + "=none."}, nil); err != nil {
		return nil, fmt.Errorf("subprocess runtime: %w", err)
	}
	if _, err := rt.claims.tidy(time.Now(), false); err != nil {
		return nil, fmt.Errorf("subprocess root %s: %w", root, err)
	}
	rt.wardens.cfg = nest.Config{Cgroup: cfg.Cgroup}
	rt.probed = sync.OnceValue(rt.isolate)
	if cfg.Isolation == Required {
		if _, err := rt.abilities(Required); err != nil {
			return nil, errors.Join(fmt.Errorf("subprocess runtime: %w", err), rt.wardens.close())
		}
	}
	return rt, nil
}

// prepareRoot returns the root without symlinks: current directories of processes are
// compared with it.
func prepareRoot(root string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", err
	}
	if root == "/" {
		return "", fmt.Errorf("want a directory of its own")
	}
	return root, nil
}

// Type returns "subprocess".
func (r *Runtime) Type() string { return Type }

// Properties declares what was found to hold on this machine.
func (r *Runtime) Properties() runtime.Properties {
	a, err := r.abilities(Auto)
	if err != nil {
		a = abilities{policies: policies}
	}
	return r.properties(a)
}

// Prepare checks what the run asks for, and works out what its sandboxes see.
func (r *Runtime) Prepare(_ context.Context, spec runtime.RunSpec) (runtime.Environment, error) {
	if r.closed.Load() {
		return nil, errRuntimeClosed
	}
	o, err := parseOptions(spec.Options)
	if err != nil {
		return nil, err
	}
	return r.environment(spec, o)
}

func (r *Runtime) environment(spec runtime.RunSpec, o options) (*environment, error) {
	a, err := r.abilities(o.Isolation)
	if err != nil {
		return nil, err
	}
	if err := a.checkRun(spec); err != nil {
		return nil, err
	}
	if err := r.checkStore(spec.Store); err != nil {
		return nil, err
	}
	e := &environment{rt: r, options: o, able: a}
	if a.nested {
		e.view = r.view(o.Visible)
	}
	return e, nil
}

// checkStore refuses what would be swept by nobody.
func (r *Runtime) checkStore(store string) error {
	if store == "" || store == r.cfg.Store {
		return nil
	}
	return fmt.Errorf("store %s: this subprocess runtime makes sandboxes for store %s", store, r.cfg.Store)
}

// Close makes the runtime refuse new sandboxes. What is still running in one that has a
// nest dies.
func (r *Runtime) Close() error {
	r.closed.Store(true)
	return errors.Join(r.wardens.close(), r.claims.spares.close())
}
