// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

// Type is the word under runtime.type in a run file.
const Type = "subprocess"

// policies are what this runtime can enforce anywhere.
var policies = []runtime.NetworkPolicy{runtime.FullInternet}

func refuse(feature, value string, supported ...string) error {
	return &runtime.UnsupportedError{Runtime: Type, Feature: feature, Value: value, Supported: supported}
}

// checkRun refuses what a run asks for and can't get.
func (a abilities) checkRun(spec runtime.RunSpec) error {
	for _, n := range spec.Network {
		if err := a.checkNetwork(n); err != nil {
			return err
		}
	}
	for _, image := range spec.Images {
		if err := checkImage(image); err != nil {
			return err
		}
	}
	for _, user := range spec.Users {
		if err := checkUser(user); err != nil {
			return err
		}
	}
	if err := a.checkServices(spec.Services, ""); err != nil {
		return err
	}
	if spec.Stack != "" {
		return refuse("stack", spec.Stack)
	}
	return a.checkResources(spec.Resources)
}

// checkSpec refuses what a sandbox asks for and can't get.
func (a abilities) checkSpec(spec runtime.Spec) error {
	for _, phase := range phases {
		n, ok := spec.NetworkFor(phase)
		if !ok {
			return fmt.Errorf("no network policy for the %s phase: name one, %v are supported", phase, a.policies)
		}
		if err := a.checkNetwork(n); err != nil {
			return err
		}
	}
	for _, user := range spec.Users {
		if err := checkUser(user); err != nil {
			return err
		}
	}
	if spec.Workdir != "" {
		return refuse("workdir", spec.Workdir)
	}
	return cmpErr(checkImage(spec.Image), a.checkServices(spec.Services, spec.Runner), a.checkResources(spec.Resources))
}

func (a abilities) checkNetwork(n runtime.Network) error {
	if slices.Contains(a.policies, n.Policy) {
		return nil
	}
	supported := make([]string, len(a.policies))
	for i, p := range a.policies {
		supported[i] = string(p)
	}
	return a.because(string(n.Policy), refuse("network_policy", string(n.Policy), supported...))
}

// because adds what is known about why something can't be enforced.
func (a abilities) because(key string, err error) error {
	if why := a.why[key]; why != nil {
		return fmt.Errorf("%w (%w)", err, why)
	}
	return err
}

func checkImage(image runtime.Image) error {
	if image == (runtime.Image{}) {
		return nil
	}
	if image.Ref != "" {
		return refuse("image", image.Ref)
	}
	return refuse("image", image.BuildContext)
}

func checkUser(user string) error {
	if user == "" {
		return nil
	}
	return refuse("user", user)
}

func checkService(name string) error {
	if name == "" {
		return nil
	}
	return refuse("service", name)
}

// checkServices lets through what describes a single box: no service, or one without
// a name that asks for nothing.
func (a abilities) checkServices(services []runtime.Service, runner string) error {
	for _, s := range services {
		if err := cmpErr(checkService(s.Name), checkImage(s.Image), a.checkResources(s.Resources)); err != nil {
			return err
		}
	}
	if len(services) > 1 {
		return refuse("service", fmt.Sprintf("stacks of %d", len(services)))
	}
	return checkService(runner)
}

// checkResources refuses every limit that can't be enforced. It walks the struct, so that
// a limit which is added to the contract is refused here until somebody enforces it.
func (a abilities) checkResources(r runtime.Resources) error {
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if v.Field(i).IsZero() || v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0 {
			continue
		}
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if !slices.Contains(a.limits, key) {
			return a.because(key, refuse("resources."+key, fmt.Sprint(v.Field(i)), a.limits...))
		}
	}
	return nil
}

// cmpErr returns the first error.
func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

var errRuntimeClosed = errors.New("the subprocess runtime is closed")
