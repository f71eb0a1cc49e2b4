// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// RunSpec is what a runtime is asked to prepare for a run. Asking for it before
// anything is submitted is how a policy that can't be enforced is refused early.
func RunSpec(run manifest.Run, runID, store, worker string) runtime.RunSpec {
	spec := runtime.RunSpec{
		Run: runID, Store: store, Worker: worker,
		Network:   []runtime.Network{network(run)},
		Resources: Resources(run.Runtime.Resources, manifest.Resources{}),
		Options:   run.Runtime.Options,
	}
	if run.Runtime.Image != "" {
		spec.Images = []runtime.Image{{Ref: run.Runtime.Image}}
	}
	return spec
}

func network(run manifest.Run) runtime.Network {
	return runtime.Network{Policy: runtime.NetworkPolicy(run.NetworkPolicy), Allow: run.LimitedInternetAllowlist}
}
