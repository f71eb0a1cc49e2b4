// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func digestOf(r *Run, ids ...string) string {
	d := NewDigest(r, []PackRef{{Name: "p", SHA256: "abc"}}, "")
	for _, id := range ids {
		d.Add(id)
	}
	return d.Sum()
}

func exampleRun() *Run {
	return &Run{
		Name: "demo", Repeats: 2, Agent: Agent{Name: "mine", Command: []string{"sh", "<run>"}, Env: map[string]string{"A": "1"}, Secrets: []string{"X", "Y"}},
		Grade: GradeRule{PassThreshold: 1}, Runtime: RuntimeConfig{Type: "docker"}, NetworkPolicy: "no_internet",
	}
}

// The digest is an identity: stored runs are found by it.
func TestDigestVector(t *testing.T) {
	const want = "8f389101aeab834d2aebcb9a4a34e6e6aec5e25191b6deb6c48e6b3034de7f0f"
	if got := digestOf(exampleRun(), "a", "b/c"); got != want {
		t.Errorf("digest = %s, want %s", got, want)
	}
}

func TestDigestCovers(t *testing.T) {
	base := digestOf(exampleRun(), "a", "b")
	change := map[string]func(*Run){
		"repeats":         func(r *Run) { r.Repeats = 3 },
		"agent.name":      func(r *Run) { r.Agent.Name = "other" },
		"agent.command":   func(r *Run) { r.Agent.Command = []string{"sh"} },
		"agent.env":       func(r *Run) { r.Agent.Env = map[string]string{"A": "2"} },
		"agent.secrets":   func(r *Run) { r.Agent.Secrets = []string{"X"} },
		"agent.timeout":   func(r *Run) { r.Agent.Timeout = 1 },
		"grade":           func(r *Run) { r.Grade.PassThreshold = 0.5 },
		"runtime":         func(r *Run) { r.Runtime.Image = "x" },
		"resources":       func(r *Run) { r.Runtime.Resources.Memory = 1 },
		"options":         func(r *Run) { r.Runtime.Options = map[string]any{"a": 1} },
		"network_policy":  func(r *Run) { r.NetworkPolicy = "full_internet" },
		"allowlist":       func(r *Run) { r.LimitedInternetAllowlist = []string{"a.com"} },
		"agent_processes": func(r *Run) { r.AgentProcesses = "keep" },
		"task_secrets":    func(r *Run) { r.TaskSecrets = []string{"X"} },
	}
	for name, f := range change {
		r := exampleRun()
		f(r)
		if digestOf(r, "a", "b") == base {
			t.Errorf("%s is not covered", name)
		}
	}
	keep := map[string]func(*Run){
		"name":      func(r *Run) { r.Name = "other" },
		"limits":    func(r *Run) { r.Limits.MaxInFlight = 3 },
		"retry":     func(r *Run) { r.Retry.MaxAttempts = 9 },
		"priority":  func(r *Run) { r.Priority = "high" },
		"no option": func(r *Run) { r.Runtime.Options = map[string]any{} },
		"secrets":   func(r *Run) { r.Agent.Secrets = []string{"Y", "X"} },
	}
	for name, f := range keep {
		r := exampleRun()
		f(r)
		if digestOf(r, "a", "b") != base {
			t.Errorf("%s is covered", name)
		}
	}
	for _, ids := range [][]string{{"a"}, {"b", "a"}, {"ab"}, {"a", "b", ""}} {
		if digestOf(exampleRun(), ids...) == base {
			t.Errorf("tasks %q are the same as a, b", ids)
		}
	}
}

func TestDiffRuns(t *testing.T) {
	old := RunRecord{Run: *exampleRun(), Plan: Plan{Digest: "1", Tasks: 3}, Packs: []PackRef{{"p", "0123456789abcdef", 3}}}
	same := old
	if lines := DiffRuns(old, same); lines != nil {
		t.Errorf("a run differs from itself: %q", lines)
	}
	same.Plan.Digest = "2"
	if diff := cmp.Diff([]string{"tasks: other ones are selected, or in another order"}, DiffRuns(old, same)); diff != "" {
		t.Error(diff)
	}
	next := old
	next.Run = *exampleRun()
	next.Packs = []PackRef{{"p", "fedcba9876543210", 3}, {"q", "00", 1}}
	next.Plan.Tasks = 4
	next.AgentFiles = "0011"
	next.Run.Repeats = 5
	next.Run.Agent.Env = map[string]string{"A": "2", "B": "3"}
	next.Run.Agent.Timeout = Duration(time.Minute)
	next.Run.Runtime = RuntimeConfig{Type: "subprocess", Resources: Resources{Memory: 1 << 30}}
	next.Run.NetworkPolicy = "full_internet"
	next.Run.Priority = "high" // not in the digest
	want := []string{
		"packs[0]: p 0123456789ab → p fedcba987654",
		"packs[1]: none → q 00",
		"repeats: 2 → 5",
		"agent.files: none → 0011",
		`agent.env.A: "1" → "2"`,
		`agent.env.B: none → "3"`,
		"agent.timeout: 0s → 1m0s",
		"runtime.type: docker → subprocess",
		"runtime.resources.memory: 0 → 1GiB",
		"network_policy: no_internet → full_internet",
	}
	if diff := cmp.Diff(want, DiffRuns(old, next)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
