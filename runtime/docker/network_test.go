// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

func addresses(t *testing.T, sb *Sandbox) string {
	t.Helper()
	return sh(t, sb, "ip -4 -o addr | grep -v ' lo ' | wc -l")
}

// TestPhasesWithDifferentNetworks goes through all pairs of policies, with a process that
// lives through the switches, and through a stop and start in a phase without.
func TestPhasesWithDifferentNetworks(t *testing.T) {
	l := newLab(t)
	on, off := runtime.Network{Policy: runtime.FullInternet}, runtime.Network{Policy: runtime.NoInternet}
	sb := l.open(t, l.runtime(t), func(s *runtime.Spec) {
		s.Network = map[runtime.Phase]runtime.Network{runtime.Setup: off, runtime.Agent: on, runtime.Grade: off}
	})
	want := map[runtime.Phase]string{runtime.Setup: "0\n", runtime.Agent: "1\n", runtime.Grade: "0\n"}
	if got := addresses(t, sb); got != want[runtime.Setup] {
		t.Errorf("after Open, in setup, there are %s addresses", got)
	}
	sh(t, sb, "sleep 1000 >/dev/null 2>&1 &")
	for _, p := range []runtime.Phase{runtime.Agent, runtime.Grade, runtime.Grade, runtime.Setup, runtime.Agent, runtime.Agent, runtime.Setup} {
		if err := sb.SetPhase(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if got := addresses(t, sb); got != want[p] {
			t.Errorf("in phase %s there are %s addresses", p, got)
		}
		if p != runtime.Agent {
			exit, out := try(t, sb, "nc -w 1 1.1.1.1 80 || nc -w 1 172.17.0.1 22")
			if exit.OK() || strings.Count(out, "unreachable") != 2 {
				t.Errorf("in phase %s: exit %+v, %s", p, exit, out)
			}
		}
	}
	if list := l.top(t, sb); len(list) != 2 {
		t.Errorf("docker top has %q; want PID 1 and the process that lived through the switches", list)
	}
	sb.power.Lock()
	err := sb.restart(t.Context())
	sb.power.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if got := addresses(t, sb); got != "0\n" {
		t.Errorf("after a restart in setup there are %s addresses", got)
	}
}

func TestNoInternetHasNoNetwork(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t))
	info, err := l.cli.ContainerInspect(t.Context(), sb.box.ID)
	if err != nil || info.HostConfig.NetworkMode != none {
		t.Errorf("network mode %q, error %v; want none", info.HostConfig.NetworkMode, err)
	}
	if sb.box.Network != "" || len(sb.Describe().Networks) != 0 {
		t.Errorf("a network was made: %+v", sb.Describe())
	}
	if _, err := sb.Endpoint(t.Context(), "", 80); err == nil {
		t.Error("it has an address")
	}
}
