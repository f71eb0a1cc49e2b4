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

// policies are what this runtime can enforce.
var policies = []runtime.NetworkPolicy{runtime.FullInternet}

var unprotected = []string{
	"Commands run as the worker's own user: they can read and change whatever it can, its home, data directory and sockets included.",
	"Commands see the worker and the other trials of this machine as processes and may signal them.",
	"The network is the host's: nothing that the worker reaches is out of reach.",
	"No limit on memory, processes, files or disk is enforced.",
	"A process that leaves its process group, changes its directory and drops TIDEMILL_SANDBOX from its environment outlives its sandbox.",
	"When the worker is killed, children that a command left in the background live until the sandbox is swept or its name is opened again.",
}

func properties() runtime.Properties {
	return runtime.Properties{Policies: slices.Clone(policies), Unprotected: slices.Clone(unprotected)}
}

func refuse(feature, value string) error {
	return &runtime.UnsupportedError{Runtime: Type, Feature: feature, Value: value}
}

// checkRun refuses what a run asks for and can't get.
func checkRun(spec runtime.RunSpec) error {
	for _, n := range spec.Network {
		if err := checkNetwork(n); err != nil {
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
	if err := checkServices(spec.Services, ""); err != nil {
		return err
	}
	if spec.Stack != "" {
		return refuse("stack", spec.Stack)
	}
	for key := range spec.Options {
		return refuse("options."+key, fmt.Sprint(spec.Options[key])) // there are none
	}
	return checkResources(spec.Resources)
}

// checkSpec refuses what a sandbox asks for and can't get.
func checkSpec(spec runtime.Spec) error {
	for _, phase := range []runtime.Phase{runtime.Setup, runtime.Agent, runtime.Grade} {
		n, ok := spec.NetworkFor(phase)
		if !ok {
			return fmt.Errorf("no network policy for the %s phase: name one, %s is supported", phase, policies[0])
		}
		if err := checkNetwork(n); err != nil {
			return err
		}
	}
	for _, user := range spec.Users {
		if err := checkUser(user); err != nil {
			return err
		}
	}
	return cmpErr(checkImage(spec.Image), checkServices(spec.Services, spec.Runner), checkResources(spec.Resources))
}

func checkNetwork(n runtime.Network) error {
	if slices.Contains(policies, n.Policy) {
		return nil
	}
	supported := make([]string, len(policies))
	for i, p := range policies {
		supported[i] = string(p)
	}
	return &runtime.UnsupportedError{
		Runtime: Type, Feature: "network_policy", Value: string(n.Policy), Supported: supported,
	}
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
func checkServices(services []runtime.Service, runner string) error {
	for _, s := range services {
		if err := cmpErr(checkService(s.Name), checkImage(s.Image), checkResources(s.Resources)); err != nil {
			return err
		}
	}
	if len(services) > 1 {
		return refuse("service", fmt.Sprintf("stacks of %d", len(services)))
	}
	return checkService(runner)
}

// checkResources refuses every limit. It walks the struct, so that a limit which is
// added to the contract is refused here until somebody enforces it.
func checkResources(r runtime.Resources) error {
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if v.Field(i).IsZero() || v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0 {
			continue
		}
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		return refuse("resources."+key, fmt.Sprint(v.Field(i)))
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
