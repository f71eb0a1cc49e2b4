// SPDX-License-Identifier: Apache-2.0

// Package runtimes is the registry of the runtimes that this build can offer.
package runtimes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/scripted"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

// Config is what runtimes need to begin with.
type Config struct {
	// Dir is where sandboxes of this machine are made.
	Dir string
	// StoreUUID is whose they are.
	StoreUUID string
}

// makers says how each type is made.
var makers = map[string]func(Config) (runtime.Runtime, error){
	subprocess.Type: func(c Config) (runtime.Runtime, error) {
		return subprocess.New(subprocess.Config{Root: c.Dir, Store: c.StoreUUID})
	},
	scripted.Type: func(Config) (runtime.Runtime, error) { return scripted.New(scripted.Config{}), nil },
}

// Types returns the names of all types, sorted.
func Types() []string { return slices.Sorted(maps.Keys(makers)) }

// New makes the runtimes of these types. Close them all.
func New(c Config, types ...string) (map[string]runtime.Runtime, error) {
	out := map[string]runtime.Runtime{}
	for _, kind := range types {
		mk, ok := makers[kind]
		if !ok {
			return nil, errors.Join(
				fmt.Errorf("runtime %q: this build has %s", kind, strings.Join(Types(), ", ")), Close(out))
		}
		rt, err := mk(c)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("runtime %s: %w", kind, err), Close(out))
		}
		out[kind] = rt
	}
	return out, nil
}

// Close closes runtimes.
func Close(rts map[string]runtime.Runtime) error {
	var errs []error
	for _, rt := range rts {
		errs = append(errs, rt.Close())
	}
	return errors.Join(errs...)
}
