// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/images"
	"github.com/tidemill/tidemill/runtime/docker/internal/subnet"
)

// Runtime provides sandboxes that are containers of one engine.
type Runtime struct {
	cfg    Config
	engine *engine
	images *images.Store
	closed atomic.Bool

	found   machines // what the engine can do, found out when it is first needed
	tools   tools
	watch   *watch
	subnets *subnet.Pool
}

var _ runtime.Runtime = (*Runtime)(nil)

var errRuntimeClosed = errors.New("the docker runtime is closed")

// New checks the configuration and makes the directory where it is missing. It needs no
// engine: that is asked for when there is something to do, so that who only has this
// runtime among others works without one.
func New(cfg Config) (*Runtime, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	dir, err := prepareDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("docker directory %s: %w", cfg.Dir, err)
	}
	cfg.Dir = dir
	e, err := newEngine(cfg)
	if err != nil {
		return nil, err
	}
	store, err := images.New(e.Client, cfg.Images)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	pool, err := subnet.New(e.Client, cfg.Subnets)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	r := &Runtime{cfg: cfg, engine: e, images: store, subnets: pool}
	r.tools = tools{dir: cfg.Dir, engine: e}
	r.watch = newWatch(e, cfg.Store)
	r.tidy(time.Now())
	return r, nil
}

func prepareDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(dir, boxesName), 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// Type returns "docker".
func (r *Runtime) Type() string { return Type }

// Prepare checks what the run asks for, and pulls or builds its images.
func (r *Runtime) Prepare(ctx context.Context, spec runtime.RunSpec) (runtime.Environment, error) {
	if r.closed.Load() {
		return nil, errRuntimeClosed
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := checkOptions(spec.Options); err != nil {
		return nil, err
	}
	m, err := r.machine(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.checkRun(spec); err != nil {
		return nil, err
	}
	if err := r.checkStore(spec.Store); err != nil {
		return nil, err
	}
	e := &environment{rt: r, machine: m, images: r.images.Run()}
	for _, image := range spec.Images {
		if _, err := e.images.Ensure(ctx, image); err != nil {
			e.images.Close()
			return nil, err
		}
	}
	return e, nil
}

// checkStore refuses what would be swept by nobody.
func (r *Runtime) checkStore(store string) error {
	if store == "" || store == r.cfg.Store {
		return nil
	}
	return fmt.Errorf("store %s: this docker runtime makes sandboxes for store %s", store, r.cfg.Store)
}

// Close makes the runtime refuse new sandboxes and stops listening to the engine.
func (r *Runtime) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	r.watch.close()
	return r.engine.Close()
}
