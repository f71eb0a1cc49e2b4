// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// Runtime provides sandboxes that are directories of this machine.
type Runtime struct {
	cfg    Config
	claims claims
	closed atomic.Bool
}

var _ runtime.Runtime = (*Runtime)(nil)

// New checks the configuration and makes the root where it is missing.
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
		claims: claims{root: root, store: cfg.Store, reap: newReaper(root, cfg.KillTimeout)},
	}
	// To look at the processes once shows that it can be done.
	if _, err := rt.claims.reap.table.find(quarry{mark: markVar + "=none."}, nil); err != nil {
		return nil, fmt.Errorf("subprocess runtime: %w", err)
	}
	if err := rt.claims.tidy(time.Now()); err != nil {
		return nil, fmt.Errorf("subprocess root %s: %w", root, err)
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

// Properties declares that nothing but full_internet is enforced, and what that means.
func (r *Runtime) Properties() runtime.Properties { return properties() }

// Prepare checks what the run asks for; there is nothing to warm up.
func (r *Runtime) Prepare(_ context.Context, spec runtime.RunSpec) (runtime.Environment, error) {
	if r.closed.Load() {
		return nil, errRuntimeClosed
	}
	if err := checkRun(spec); err != nil {
		return nil, err
	}
	if err := r.checkStore(spec.Store); err != nil {
		return nil, err
	}
	return &environment{rt: r}, nil
}

// checkStore refuses what would be swept by nobody.
func (r *Runtime) checkStore(store string) error {
	if store == "" || store == r.cfg.Store {
		return nil
	}
	return fmt.Errorf("store %s: this subprocess runtime makes sandboxes for store %s", store, r.cfg.Store)
}

// Close makes the runtime refuse new sandboxes. It holds nothing else.
func (r *Runtime) Close() error {
	r.closed.Store(true)
	return nil
}
