// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/manifest"
)

// TaskCheck says why a task can't run, nil when nothing is known against it.
type TaskCheck func(*manifest.Task) error

// Demand is something that tasks ask for themselves.
type Demand struct {
	What  string `json:"what"`
	Tasks int    `json:"tasks"` // how many do
	First string `json:"first"` // the first of them
}

// seenTasks gathers what the selected tasks of a draft say themselves.
type seenTasks struct {
	run      *manifest.Run
	checks   []TaskCheck
	uniform  map[*manifest.Pack]bool // packs of which one task stands for all, that were looked at
	networks map[string]manifest.Network
	users    map[string]bool
	gpus     int
	demands  map[string]*Demand
	order    []string
	secrets  map[string]*Demand // not granted, and needed
	defaults map[string]*Demand // not granted, with a default
	open     map[string]*Demand // networks that the run doesn't give, by policy
	warnings manifest.Problems
	problems manifest.Problems
	refused  []error
}

func newSeenTasks(run *manifest.Run, checks []TaskCheck) *seenTasks {
	return &seenTasks{
		run: run, checks: append([]TaskCheck{imageless(run)}, checks...), uniform: map[*manifest.Pack]bool{}, networks: map[string]manifest.Network{},
		users: map[string]bool{}, demands: map[string]*Demand{},
		secrets: map[string]*Demand{}, defaults: map[string]*Demand{}, open: map[string]*Demand{},
	}
}

// look reads a selected task, unless another of its pack stands for it.
func (s *seenTasks) look(p *manifest.Pack, ref manifest.TaskRef) error {
	if !p.Various() {
		if s.uniform[p] {
			return nil
		}
		s.uniform[p] = true
	}
	t, err := p.Task(ref)
	if err != nil {
		return err
	}
	if err := s.oracle(p, t); err != nil {
		return err
	}
	s.secret(t)
	s.network(t)
	s.resources(t)
	for _, check := range s.checks {
		if err := check(t); err != nil {
			s.refused = append(s.refused, err)
			break // one reason is enough
		}
	}
	s.warnings = append(s.warnings, t.Warnings...)
	return nil
}

// count counts a task that wants something.
func count(m map[string]*Demand, what string, t *manifest.Task) *Demand {
	if m[what] == nil {
		m[what] = &Demand{What: what, First: t.ID}
	}
	m[what].Tasks++
	return m[what]
}

func (s *seenTasks) demand(what string, t *manifest.Task) {
	if count(s.demands, what, t).Tasks == 1 {
		s.order = append(s.order, what)
	}
}

// oracle finds tasks that the oracle can't solve.
func (s *seenTasks) oracle(p *manifest.Pack, t *manifest.Task) error {
	if s.run.Agent.Name != manifest.OracleAgent || len(s.run.Agent.Command) > 0 {
		return nil
	}
	for _, step := range t.Steps {
		if step.Oracle == nil && !p.Various() {
			return fmt.Errorf("%s: agent oracle needs a pack with an oracle command, and %s has none", s.run.File, p.Dir)
		}
		if step.Oracle == nil {
			in := ""
			if step.Name != "" {
				in = fmt.Sprintf(" in step %q", step.Name)
			}
			s.problems = append(s.problems, manifest.Problem{
				File: s.run.File, Entry: "agent.name", Text: fmt.Sprintf("agent oracle: task %q has no solution%s", t.ID, in),
				Fix: "leave the task out with select.exclude",
			})
			break
		}
	}
	return nil
}

func (s *seenTasks) secret(t *manifest.Task) {
	all, needed := t.Secrets()
	for _, name := range all {
		switch {
		case slices.Contains(s.run.TaskSecrets, name) || slices.Contains(s.run.Agent.Secrets, name):
			s.demand("the secret "+name, t)
		case slices.Contains(needed, name):
			count(s.secrets, name, t)
		default:
			count(s.defaults, name, t)
		}
	}
}

func (s *seenTasks) network(t *manifest.Task) {
	if s.run.NetworkPolicy != manifest.TaskNetwork {
		said := map[string]bool{}
		for _, n := range t.Network {
			if n.Policy != s.run.NetworkPolicy && !said[n.Policy] {
				said[n.Policy] = true
				count(s.open, n.Policy, t)
			}
		}
		return
	}
	network := t.Network
	if len(network) == 0 {
		network = map[string]manifest.Network{"": {Policy: "no_internet"}}
	}
	said := map[string]bool{}
	for _, phase := range slices.Sorted(maps.Keys(network)) {
		n := network[phase]
		if _, known := s.networks[n.Policy]; !known {
			s.networks[n.Policy] = n
		}
		if !said[n.Policy] {
			said[n.Policy] = true
			s.demand("network "+n.Policy, t)
		}
	}
}

func (s *seenTasks) resources(t *manifest.Task) {
	switch {
	case s.run.Runtime.Image != "":
	case t.Image != "":
		s.demand("an image of its own", t)
	case t.Build != nil:
		s.demand("an image that is built", t)
	}
	users := slices.Collect(maps.Values(t.Users))
	for _, step := range t.Steps {
		users = append(users, step.Grade.User)
	}
	slices.Sort(users)
	for _, user := range slices.Compact(users) {
		if user != "" {
			s.users[user] = true
			s.demand("the user "+user, t)
		}
	}
	if gpus := t.Resources.GPUs; gpus > 0 && s.run.Runtime.Resources.GPUs == 0 {
		s.gpus = max(s.gpus, gpus)
		s.demand("GPUs", t)
	}
}

// finish tells what the tasks said, or why they can't run.
func (s *seenTasks) finish(d *Draft) error {
	for _, name := range slices.Sorted(maps.Keys(s.secrets)) {
		s.problems = append(s.problems, manifest.Problem{
			File: s.run.File, Entry: "task_secrets", Text: s.secrets[name].words() + " the secret " + name,
			Fix: "list it under task_secrets and set it in the environment of the workers, or leave such tasks out with select.exclude",
		})
	}
	if err := errors.Join(asError(s.problems), s.refusals()); err != nil {
		return err
	}
	for _, policy := range slices.Sorted(maps.Keys(s.networks)) {
		d.Asks.Networks = append(d.Asks.Networks, s.networks[policy])
	}
	d.Asks.Users, d.Asks.GPUs = slices.Sorted(maps.Keys(s.users)), s.gpus
	for _, what := range s.order {
		d.Demands = append(d.Demands, *s.demands[what])
	}
	d.Warnings = s.warnings
	for _, name := range slices.Sorted(maps.Keys(s.defaults)) {
		d.Warnings = append(d.Warnings, manifest.Problem{
			File: s.run.File, Text: s.defaults[name].words() + " the secret " + name + ", and will get a default",
			Fix: "list it under task_secrets if it is to be had",
		})
	}
	if len(s.open) > 0 {
		var asked []string
		for _, policy := range slices.Sorted(maps.Keys(s.open)) {
			asked = append(asked, fmt.Sprintf("%s %s", s.open[policy].words(), policy))
		}
		d.Warnings = append(d.Warnings, manifest.Problem{
			File: s.run.File, Entry: "network_policy",
			Text: s.run.NetworkPolicy + " goes before what tasks ask for: " + strings.Join(asked, "; "),
		})
	}
	return nil
}

// words say who wants it, in the order of speech.
func (d *Demand) words() string {
	if d.Tasks == 1 {
		return fmt.Sprintf("task %q asks for", d.First)
	}
	return fmt.Sprintf("%d tasks ask for (the first is %q)", d.Tasks, d.First)
}
