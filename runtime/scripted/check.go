// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/tidemill/tidemill/runtime"
)

func (r *Runtime) unsupported(feature string, value any, supported ...string) error {
	return &runtime.UnsupportedError{Runtime: Type, Feature: feature, Value: fmt.Sprint(value), Supported: supported}
}

// checkRun refuses what Properties doesn't have.
func (r *Runtime) checkRun(s runtime.RunSpec) error {
	for _, n := range s.Network {
		if err := r.checkNetwork(n); err != nil {
			return err
		}
	}
	if len(s.Users) > 0 && !r.props.Users {
		return r.unsupported("user", s.Users)
	}
	if i := slices.IndexFunc(s.Images, given); i >= 0 && !r.props.Images {
		return r.unsupported("image", imageName(s.Images[i]))
	}
	if (len(s.Services) > 0 || s.Stack != "") && !r.props.Services {
		return r.unsupported("services", cmp.Or(s.Stack, fmt.Sprintf("(%d of them)", len(s.Services))))
	}
	return r.checkResources(s.Resources)
}

func (r *Runtime) checkSpec(s runtime.Spec) error {
	for _, phase := range []runtime.Phase{runtime.Setup, runtime.Agent, runtime.Grade} {
		n, ok := s.NetworkFor(phase)
		if !ok {
			return fmt.Errorf("phase %s has no network policy, want one for it or for the phase %s", phase, runtime.Agent)
		}
		if err := r.checkNetwork(n); err != nil {
			return err
		}
	}
	if s.Workdir != "" {
		switch {
		case !r.props.Images: // then it has no file system of its own
			return r.unsupported("workdir", s.Workdir)
		case !path.IsAbs(s.Workdir), path.Clean(s.Workdir) == "/":
			return fmt.Errorf("workdir %q: want an absolute path below /", s.Workdir)
		}
	}
	run := runtime.RunSpec{Services: s.Services, Resources: s.Resources, Images: []runtime.Image{s.Image}}
	for _, u := range s.Users {
		run.Users = append(run.Users, u)
	}
	for _, service := range s.Services {
		if err := r.checkResources(service.Resources); err != nil {
			return fmt.Errorf("service %s: %w", service.Name, err)
		}
	}
	if s.Runner != "" && !slices.ContainsFunc(s.Services, func(v runtime.Service) bool { return v.Name == s.Runner }) {
		return fmt.Errorf("runner %s is none of the services", s.Runner)
	}
	return r.checkRun(run)
}

func (r *Runtime) checkNetwork(n runtime.Network) error {
	if slices.Contains(r.props.Policies, n.Policy) {
		return nil
	}
	var supported []string
	for _, p := range r.props.Policies {
		supported = append(supported, string(p))
	}
	return r.unsupported("network_policy", n.Policy, supported...)
}

func (r *Runtime) checkResources(res runtime.Resources) error {
	for _, limit := range []struct {
		key   string
		asked bool
		value any
	}{
		{"cpus", res.CPUs > 0, res.CPUs},
		{"memory", res.Memory > 0, res.Memory},
		{"disk", res.Disk > 0, res.Disk},
		{"pids", res.Pids > 0, res.Pids},
		{"files", res.Files > 0, res.Files},
		{"shm", res.Shm > 0, res.Shm},
		{"gpus", res.GPUs > 0, res.GPUs},
	} {
		if limit.asked && !slices.Contains(r.props.Limits, limit.key) {
			return r.unsupported("resources."+limit.key, limit.value, r.props.Limits...)
		}
	}
	return nil
}

func given(i runtime.Image) bool { return i.Ref != "" || i.BuildContext != "" }

func imageName(i runtime.Image) string { return cmp.Or(i.Ref, i.BuildContext) }
