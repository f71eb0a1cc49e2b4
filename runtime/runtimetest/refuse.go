// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"errors"
	"slices"

	"github.com/tidemill/tidemill/runtime"
)

var policies = []runtime.NetworkPolicy{runtime.FullInternet, runtime.NoInternet, runtime.LimitedInternet}

// network is a policy with what it needs.
func network(p runtime.NetworkPolicy) runtime.Network {
	n := runtime.Network{Policy: p}
	if p == runtime.LimitedInternet {
		n.Allow = []string{"example.com"}
	}
	return n
}

// limits asks for one resource each.
var limits = map[string]runtime.Resources{
	"cpus": {CPUs: 1}, "memory": {Memory: 256 << 20}, "disk": {Disk: 1 << 30}, "pids": {Pids: 128},
	"files": {Files: 512}, "shm": {Shm: 64 << 20}, "gpus": {GPUs: 1},
}

// ask is something that a runtime enforces or refuses.
type ask struct {
	feature  []string // any of these words in the error
	enforced bool
	run      func(*runtime.RunSpec)
	spec     func(*runtime.Spec)
}

func (f *fixture) asks() map[string]ask {
	p := f.rt.Properties()
	asks := map[string]ask{
		"a user": {
			feature: []string{"user", "users"}, enforced: p.Users,
			run:  func(s *runtime.RunSpec) { s.Users = []string{"somebody"} },
			spec: func(s *runtime.Spec) { s.Users = map[runtime.Phase]string{runtime.Grade: "somebody"} },
		},
		"an image": {
			feature: []string{"image", "images"}, enforced: p.Images,
			run:  func(s *runtime.RunSpec) { s.Images = []runtime.Image{{Ref: "example:1"}} },
			spec: func(s *runtime.Spec) { s.Image = runtime.Image{Ref: "example:1"} },
		},
		"services": {
			feature: []string{"service", "services"}, enforced: p.Services,
			run: func(s *runtime.RunSpec) { s.Services = []runtime.Service{{Name: "runner"}, {Name: "db"}} },
			spec: func(s *runtime.Spec) {
				s.Services = []runtime.Service{{Name: "runner"}, {Name: "db"}}
				s.Runner = "runner"
			},
		},
		"a policy that there isn't": {
			feature: []string{"network_policy"},
			run:     func(s *runtime.RunSpec) { s.Network = []runtime.Network{{Policy: "some_internet"}} },
			spec:    setNetwork(runtime.Network{Policy: "some_internet"}),
		},
	}
	for _, policy := range policies {
		asks["the policy "+string(policy)] = ask{
			feature: []string{"network_policy"}, enforced: slices.Contains(p.Policies, policy),
			run:  func(s *runtime.RunSpec) { s.Network = []runtime.Network{network(policy)} },
			spec: setNetwork(network(policy)),
		}
	}
	for key, resources := range limits {
		asks["a limit of "+key] = ask{
			feature: []string{"resources." + key}, enforced: slices.Contains(p.Limits, key),
			run:  func(s *runtime.RunSpec) { s.Resources = resources },
			spec: func(s *runtime.Spec) { s.Resources = resources },
		}
	}
	return asks
}

func setNetwork(n runtime.Network) func(*runtime.Spec) {
	return func(s *runtime.Spec) { s.Network = map[runtime.Phase]runtime.Network{runtime.Agent: n} }
}

func (f *fixture) refusal(what string, a ask, err error) {
	f.Helper()
	if err == nil {
		f.Errorf("%s is not in Properties and was accepted", what)
		return
	}
	u := wantError[*runtime.UnsupportedError](f, what, err)
	if u != nil && (!slices.Contains(a.feature, u.Feature) || u.Value == "" || u.Runtime != f.rt.Type()) {
		f.Errorf("%s: %+v, want runtime %s, feature %s and a value", what, *u, f.rt.Type(), a.feature)
	}
}

func testRefusedByPrepare(f *fixture) {
	for what, a := range f.asks() {
		if a.enforced && !slices.Contains(a.feature, "network_policy") {
			continue // needs more than the suite knows: an image that exists, a GPU
		}
		spec := f.runSpec()
		a.run(&spec)
		ctx, cancel := f.patience()
		env, err := f.rt.Prepare(ctx, spec)
		if err == nil {
			if cerr := env.Close(ctx); cerr != nil {
				f.Errorf("%s: Environment.Close: %v", what, cerr)
			}
		}
		cancel()
		if !a.enforced {
			f.refusal(what, a, err)
		} else if err != nil {
			f.Errorf("%s is in Properties and was refused: %v", what, err)
		}
	}
	f.nothingLeft("by Prepare")
}

func testRefusedByOpen(f *fixture) {
	for what, a := range f.asks() {
		if a.enforced {
			continue
		}
		f.openFails(what, f.spec(a.spec), func(err error) {
			f.refusal(what, a, err)
			if p := wantError[*runtime.ProvisionError](f, what, err); p != nil && !p.Permanent {
				f.Errorf("%s: not Permanent, although trying again won't help", what)
			}
		})
	}
	f.openFails("no policy at all", f.spec(func(s *runtime.Spec) { s.Network = nil }), func(err error) {
		if p := wantError[*runtime.ProvisionError](f, "no policy at all", err); p != nil && !p.Permanent {
			f.Error("no policy at all: not Permanent, although trying again won't help")
		}
	})
}

// openFails opens what must fail, and looks for leftovers.
func (f *fixture) openFails(what string, spec runtime.Spec, check func(error)) {
	f.Helper()
	ctx, cancel := f.patience()
	defer cancel()
	sb, err := f.env.Open(ctx, spec)
	if err == nil {
		f.Errorf("%s: Open succeeded", what)
		f.close(sb)
		return
	}
	check(err)
	if found := f.list(f.rt, spec.Name); len(found) > 0 {
		f.Errorf("%s: List has %+v after the failure", what, found)
	}
	f.nothingLeft("by a failed Open: " + what)
}

func testFailedOpen(f *fixture) {
	if len(f.h.Failing) == 0 {
		f.Skip("the harness knows no way to make Open fail")
	}
	for _, failing := range f.h.Failing {
		spec := f.spec(failing.Edit)
		f.openFails(failing.Name, spec, func(err error) {
			p := wantError[*runtime.ProvisionError](f, failing.Name, err)
			if p == nil {
				return
			}
			if p.Name != spec.Name || p.Stage == "" || failing.Stage != "" && p.Stage != failing.Stage {
				f.Errorf("%s: name %q, stage %q, want %q and %q", failing.Name, p.Name, p.Stage, spec.Name, failing.Stage)
			}
		})
		// The name is as free as before.
		sb := f.open(named(spec.Name))
		f.run(sb)
		f.close(sb)
	}
}

func testOpenCancelled(f *fixture) {
	reason := errors.New("the worker stops")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	spec := f.spec()
	sb, err := f.env.Open(ctx, spec)
	if err == nil {
		f.close(sb)
		f.Fatal("Open succeeded with an ended context")
	}
	if !errors.Is(err, reason) {
		f.Errorf("error %v, want the cause %q", err, reason)
	}
	wantError[*runtime.ProvisionError](f, "Open with an ended context", err)
	if found := f.list(f.rt, spec.Name); len(found) > 0 {
		f.Errorf("List has %+v after a cancelled Open", found)
	}
	f.nothingLeft("by a cancelled Open")
}
