// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
)

// harborModes are the words for what may be reached, with ours.
var harborModes = map[string]string{"public": "full_internet", "no-network": "no_internet", "allowlist": "limited_internet"}

// network finds out what each phase may reach: what the phase says, else the environment.
// All is open unless something is said.
func (l *harborLoad) network() {
	f := &l.file
	base := Network{Policy: "full_internet"}
	if n, ok := l.policy("environment", f.Environment.network()); ok {
		base = n
	} else if l.d.given("environment.allow_internet") && !f.Environment.AllowInternet {
		base.Policy = "no_internet"
	}
	agent, grade := base, base
	if n, ok := l.policy("agent", f.Agent.network()); ok {
		agent = n
	}
	if n, ok := l.policy("verifier", f.Verifier.network()); ok {
		grade = n
	}
	agent = l.stepNetwork("agent", agent, func(s harborStep) harborNetwork { return s.Agent.network() })
	grade = l.stepNetwork("verifier", grade, func(s harborStep) harborNetwork { return s.Verifier.network() })
	l.task.Network = map[string]Network{"setup": base, "agent": agent, "grade": grade}
}

// stepNetwork returns the network that a phase has in all steps. A sandbox has one for
// each phase; steps that want several are refused.
func (l *harborLoad) stepNetwork(phase string, of Network, wish func(harborStep) harborNetwork) Network {
	same := of
	for i, s := range l.file.Steps {
		n, entry := of, join(index("steps", i), phase)
		if own, ok := l.policy(entry, wish(s)); ok {
			n = own
		}
		if i == 0 {
			same = n
		} else if !sameNetwork(n, same) {
			l.d.problem(join(entry, "network_mode"), "differs from that of steps[0], and a sandbox has one network for each phase",
				"give all steps the same, or "+leaveOut)
		}
	}
	return same
}

// policy translates what a table says; false where it says nothing.
func (l *harborLoad) policy(entry string, n harborNetwork) (Network, bool) {
	d, mode, hosts := l.d, join(entry, "network_mode"), join(entry, "allowed_hosts")
	if !d.given(mode) && len(n.Hosts) == 0 {
		return Network{}, false
	}
	word := n.Mode
	if !d.given(mode) {
		word = "allowlist"
	}
	policy, ok := harborModes[word]
	switch {
	case !ok:
		oneOf(d, mode, word, []string{"public", "no-network", "allowlist"})
	case word != "allowlist" && len(n.Hosts) > 0:
		d.problem(hosts, "is only for network_mode allowlist", "leave it out, or change network_mode")
	case word == "allowlist" && len(n.Hosts) == 0:
		policy = "no_internet" // a list of nothing
	}
	return Network{Policy: policy, Allow: l.hosts(hosts, n.Hosts)}, true
}

func (l *harborLoad) hosts(entry string, hosts []string) []string {
	var out []string
	for i, host := range hosts {
		h := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(host)), ".")
		if text, fix := badHost(h); text != "" {
			if fix == "" {
				fix = "write host names, such as example.com or *.example.com"
			}
			l.d.problem(index(entry, i), quote(host)+" "+text, fix+"; or "+leaveOut)
		} else if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// users finds out as whom commands run. A sandbox has one user for the agent in all steps;
// the grader is started as whoever its step says.
func (l *harborLoad) users() {
	agent := string(l.file.Agent.User)
	for i, s := range l.file.Steps {
		user := string(s.Agent.User)
		if user == "" {
			user = string(l.file.Agent.User)
		}
		if i == 0 {
			agent = user
		} else if user != agent {
			l.d.problem(join(index("steps", i), "agent.user"), "differs from that of steps[0], and the agent is one user in all steps",
				"give all steps the same, or "+leaveOut)
		}
	}
	if agent != "" {
		l.task.Users = map[string]string{"setup": agent, "agent": agent}
	}
}
