// SPDX-License-Identifier: Apache-2.0

// Package runtimes is the registry of the runtimes that this build can offer.
package runtimes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker"
	"github.com/tidemill/tidemill/runtime/scripted"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

// Config is what runtimes need to begin with.
type Config struct {
	// Dir is where sandboxes of this machine are made.
	Dir string
	// StoreUUID is whose they are.
	StoreUUID string
	// Hide are directories that sandboxes of this machine must not see: the data
	// directory that Dir is in, caches.
	Hide []string
}

// makers says how each type is made.
var makers = map[string]func(Config) (runtime.Runtime, error){
	subprocess.Type: func(c Config) (runtime.Runtime, error) {
		hide, err := absolute(c.Hide)
		if err != nil {
			return nil, err
		}
		return subprocess.New(subprocess.Config{Root: c.Dir, Store: c.StoreUUID, Hide: hide})
	},
	docker.Type: func(c Config) (runtime.Runtime, error) {
		// Sandboxes have no "@" in their names, so none is called like this.
		return docker.New(docker.Config{Dir: filepath.Join(c.Dir, "@docker"), Store: c.StoreUUID})
	},
	scripted.Type: func(Config) (runtime.Runtime, error) { return scripted.New(scripted.Config{}), nil },
}

func absolute(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		out = append(out, abs)
	}
	return out, nil
}

// Types returns the names of all types, sorted.
func Types() []string { return slices.Sorted(maps.Keys(makers)) }

// UnknownTypeError says that this build has no such runtime.
type UnknownTypeError struct{ Type string }

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("runtime %q: there is none; this build has %s", e.Type, strings.Join(Types(), ", "))
}

// New makes the runtimes of these types. Close them all.
func New(c Config, types ...string) (map[string]runtime.Runtime, error) {
	out := map[string]runtime.Runtime{}
	for _, kind := range types {
		if _, ok := out[kind]; ok {
			continue
		}
		mk, ok := makers[kind]
		if !ok {
			return nil, errors.Join(&UnknownTypeError{kind}, Close(out))
		}
		rt, err := mk(c)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("runtime %s: %w", kind, err), Close(out))
		}
		out[kind] = rt
	}
	return out, nil
}

// Admit asks the runtime of a run whether it can do what the run wants. What can't be
// enforced is a [runtime.UnsupportedError].
func Admit(ctx context.Context, rts map[string]runtime.Runtime, run *manifest.Run, storeUUID string) error {
	rt, ok := rts[run.Runtime.Type]
	if !ok {
		return &UnknownTypeError{run.Runtime.Type}
	}
	env, err := rt.Prepare(ctx, trial.RunSpec(*run, "admission", storeUUID, "admission"))
	if err != nil {
		return err
	}
	return env.Close(ctx)
}

// TaskCheck returns what says of a task of a run why it can't run in this process: its
// runtime can't do what the task wants, a [runtime.UnsupportedError], or a secret that the
// task needs is not set.
func TaskCheck(rts map[string]runtime.Runtime, run *manifest.Run) func(*manifest.Task) error {
	kind := run.Runtime.Type
	rt, ok := rts[kind]
	if !ok {
		return func(*manifest.Task) error { return &UnknownTypeError{kind} }
	}
	can := rt.Properties()
	return func(t *manifest.Task) error {
		_, needed := t.Secrets()
		if _, missing := trial.SecretsFrom(needed); len(missing) > 0 {
			return fmt.Errorf("task %s: secret %s is not set in the environment", t.ID, missing[0])
		}
		return trial.Admissible(kind, can, run, t)
	}
}

// Close closes runtimes.
func Close(rts map[string]runtime.Runtime) error {
	var errs []error
	for _, rt := range rts {
		errs = append(errs, rt.Close())
	}
	return errors.Join(errs...)
}
