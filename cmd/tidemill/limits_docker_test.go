// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/internal/testenv"
)

// What an agent uses up in its container is its own result: it is graded, and the
// container is gone afterwards, with whatever was in it.
func TestLimitsOnDocker(t *testing.T) {
	t.Parallel()
	h := newQuay(t)
	image := testenv.BusyboxImage(t, h.cli)
	const (
		spent   = "completed resource_exhausted "
		bomb    = `f() { f & f; }; touch honest; f`
		alone   = `[ "$(ps | grep -c '[s]leep 7777')" = 0 ]; echo $((1-$?)) >/logs/verifier/reward.txt`
		hiding  = `touch honest; trap '' TERM INT; setsid sh -c "trap '' TERM; sleep 7777" & setsid sleep 7777 & sleep 7777`
		noMore  = `[ "$(wc -c <big)" -le 8388608 ]; echo $((1-$?)) >/logs/verifier/reward.txt`
		minutes = "1m"
	)
	plots := []plot{
		{name: "memory", agent: "touch honest; exec tail /dev/zero", want: spent + "1"},
		{name: "memory-first", agent: "exec tail /dev/zero", want: spent + "0"},
		// What goes on when its child died of it is as good as any.
		{name: "memory-in-a-child", agent: "tail /dev/zero; touch honest", want: "completed agent_done 1"},
		{name: "processes", agent: bomb, want: spent + "1"},
		{name: "disk", agent: "touch honest; exec dd if=/dev/zero of=big bs=64k", verifier: noMore, want: spent + "1"},
	}
	late := []plot{{name: "time", agent: hiding, verifier: alone, want: "timeout timeout 1"}}
	h.writePlots("tasks", image, plots)
	h.writePlots("late", image, late)
	for _, f := range []struct{ name, timeout string }{{"tasks", minutes}, {"late", "3s"}} {
		h.write(f.name+".yaml", fmt.Sprintf(`version: 1
name: limits
packs: [./%s]
agent: {name: oracle, timeout: %s}
agent_processes: end
runtime: {type: docker, resources: {memory: 64MiB, pids: 40, disk: 8MiB}}
`, f.name, f.timeout))
	}

	v := h.sail(0, "limits", "--slots", "2", "tasks.yaml")
	for _, p := range plots {
		v.landed(p.name, p.want)
	}
	v = h.sail(0, "late", "late.yaml")
	for _, p := range late {
		v.landed(p.name, p.want)
	}
	if flags := v.results["time"].Outcome.Flags; !slices.Contains(flags, "timeout_scored") {
		t.Errorf("flags: %v", flags)
	}
}
