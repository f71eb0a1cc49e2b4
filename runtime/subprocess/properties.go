// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/runtime"
)

// What plain commands aren't kept from.
var unprotectedPlain = []string{
	"Commands run as the worker's own user: they can read and change whatever it can, its home, data directory and sockets included.",
	"Commands see the worker and the other trials of this machine as processes and may signal them.",
	"The network is the host's: nothing that the worker reaches is out of reach.",
	"No limit on memory, processes, files or disk is enforced.",
	"A process that leaves its process group, changes its directory and drops TIDEMILL_SANDBOX from its environment outlives its sandbox.",
	"When the worker is killed, children that a command left in the background live until the sandbox is swept or its name is opened again.",
}

// What commands in namespaces aren't kept from.
var unprotectedNested = []string{
	"The kernel is the host's: who finds a hole in it gets out.",
	"Files of the host that are in no hidden directory can be read as the worker's user, and none but a sandbox's own can be changed. Hidden are home directories, /run, /tmp, the data directory and caches; not what the programs in PATH need of them.",
	"Under full_internet the network is the host's: its listeners on the loopback and its abstract unix sockets can be reached.",
	"A unix socket that a service of the host makes later, outside of the hidden directories, can be connected to under every network policy.",
	"A run with runtime.options.isolation none has none of this protection.",
}

func (r *Runtime) properties(a abilities) runtime.Properties {
	report := r.probed()
	p := runtime.Properties{Policies: slices.Clone(a.policies), Limits: slices.Clone(a.limits)}
	if !a.nested {
		p.Unprotected = append(slices.Clone(unprotectedPlain),
			fmt.Sprintf("Sandboxes have no namespaces of their own: %v.", report.Nests))
		return p
	}
	p.OwnProcesses = true
	p.HidesHost = report.Hides == nil
	p.Unprotected = slices.Clone(unprotectedNested)
	if report.Hides != nil {
		p.Unprotected = append(p.Unprotected, fmt.Sprintf("The host is not hidden: %v.", report.Hides))
	}
	for _, missing := range []struct {
		what string
		err  error
	}{
		{"no_internet can't be enforced", report.Offline},
		{"Memory can't be limited", report.Memory},
		{"Processes can't be limited", report.Pids},
		{"Disk can't be limited", report.Disk},
	} {
		if missing.err != nil {
			p.Unprotected = append(p.Unprotected, fmt.Sprintf("%s here: %v.", missing.what, missing.err))
		}
	}
	return p
}
