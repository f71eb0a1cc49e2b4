// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

// Type is the word under runtime.type in a run file.
const Type = "docker"

var phases = []runtime.Phase{runtime.Setup, runtime.Agent, runtime.Grade}

func refuse(feature, value string, supported ...string) error {
	return &runtime.UnsupportedError{Runtime: Type, Feature: feature, Value: value, Supported: supported}
}

// checkOptions refuses all of them: there are none.
func checkOptions(given map[string]any) error {
	for key, value := range given {
		return refuse("options."+key, fmt.Sprint(value))
	}
	return nil
}

// checkRun refuses what a run asks for and can't get.
func (m *machine) checkRun(spec runtime.RunSpec) error {
	for _, n := range spec.Network {
		if err := m.checkNetwork(n); err != nil {
			return err
		}
	}
	for _, user := range spec.Users {
		if err := checkUser(user); err != nil {
			return err
		}
	}
	if spec.Stack != "" {
		return refuse("stack", spec.Stack)
	}
	return firstOf(m.checkServices(spec.Services, ""), m.checkResources(spec.Resources))
}

// checkSpec refuses what a sandbox asks for and can't get.
func (m *machine) checkSpec(spec runtime.Spec) error {
	for _, phase := range phases {
		n, ok := spec.NetworkFor(phase)
		if !ok {
			return fmt.Errorf("no network policy for the %s phase: name one, %v are supported", phase, m.policies)
		}
		if err := m.checkNetwork(n); err != nil {
			return err
		}
	}
	if m.switches != "" && online(spec, runtime.Setup) != online(spec, runtime.Agent) || m.switches != "" && online(spec, runtime.Agent) != online(spec, runtime.Grade) {
		return because(m.switches, refuse("network_policy", "that differs between phases"))
	}
	for _, user := range spec.Users {
		if err := checkUser(user); err != nil {
			return err
		}
	}
	if w := spec.Workdir; w != "" && (!path.IsAbs(w) || path.Clean(w) != w || w == "/" || strings.ContainsRune(w, 0)) {
		return refuse("workdir", w, "an absolute path below / without dots")
	}
	return firstOf(m.checkServices(spec.Services, spec.Runner), m.checkResources(spec.Resources))
}

func (m *machine) checkNetwork(n runtime.Network) error {
	if slices.Contains(m.policies, n.Policy) {
		return nil
	}
	supported := make([]string, len(m.policies))
	for i, p := range m.policies {
		supported[i] = string(p)
	}
	return because(m.why[string(n.Policy)], refuse("network_policy", string(n.Policy), supported...))
}

// because adds what is known about why something can't be enforced.
func because(why string, err error) error {
	if why != "" {
		return fmt.Errorf("%w (%s)", err, why)
	}
	return err
}

func checkService(name string) error {
	if name == "" {
		return nil
	}
	return refuse("service", name)
}

// checkServices lets through what describes a single box: no service, or one without
// a name that asks for nothing of its own.
func (m *machine) checkServices(services []runtime.Service, runner string) error {
	if len(services) > 1 {
		return refuse("service", fmt.Sprintf("stacks of %d", len(services)))
	}
	for _, s := range services {
		if err := firstOf(checkService(s.Name), m.checkResources(s.Resources)); err != nil {
			return err
		}
		if s.Image != (runtime.Image{}) {
			return refuse("service", "an image of its own")
		}
	}
	return checkService(runner)
}

// checkResources refuses every limit that can't be enforced. It walks the struct, so that
// a limit which is added to the contract is refused here until somebody enforces it.
func (m *machine) checkResources(r runtime.Resources) error {
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if v.Field(i).IsZero() || v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0 {
			continue
		}
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if !slices.Contains(m.limits, key) {
			return because(m.why[key], refuse("resources."+key, fmt.Sprint(v.Field(i)), m.limits...))
		}
	}
	return nil
}

// firstOf returns the first error.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// refusedError is what trying again won't help with.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }
