// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"
)

// A task may want a secret: the key of the model that its grader asks. What is stored of
// it is the reference, ${NAME}; the worker puts the value in.

// Secrets are the names of the secrets that the task uses, sorted. needed has those without
// a default.
func (t *Task) Secrets() (all, needed []string) {
	for _, env := range t.secretEnvs() {
		for _, text := range env {
			parts, _ := pieces(text)
			for _, p := range parts {
				if p.name == "" {
					continue
				}
				all = append(all, p.name)
				if !p.hasFallback {
					needed = append(needed, p.name)
				}
			}
		}
	}
	slices.Sort(all)
	slices.Sort(needed)
	return slices.Compact(all), slices.Compact(needed)
}

func (t *Task) secretEnvs() []map[string]string {
	envs := []map[string]string{t.SecretEnv}
	for i := range t.Steps {
		for _, p := range t.Steps[i].programs() {
			envs = append(envs, p.SecretEnv)
		}
	}
	return envs
}

// programs are those of the step, without the agent.
func (s *Step) programs() []*Program {
	list := []*Program{&s.Grade}
	for _, p := range []*Program{s.Setup, s.Oracle} {
		if p != nil {
			list = append(list, p)
		}
	}
	return list
}

// WithSecrets returns the task with the values of its secrets in their places: a copy of
// it, where it has any. A secret that values has not, or as an empty text, has its default.
// used are the values that are in it now, to be kept out of everything that is stored;
// missing are the names that have neither value nor default.
func (t *Task) WithSecrets(values map[string]string) (filled *Task, used, missing []string) {
	all, _ := t.Secrets()
	if len(all) == 0 {
		return t, nil, nil
	}
	get := func(name string) (string, bool, *referenceError) {
		v, ok := values[name]
		if v != "" {
			used = append(used, v)
		}
		return v, ok && v != "", nil
	}
	fill := func(env, secret map[string]string) map[string]string {
		if len(secret) == 0 {
			return env
		}
		out := maps.Clone(orEmpty(env))
		for name, text := range secret {
			out[name], _ = expand(text, get) // what has no value is told below
		}
		return out
	}
	program := func(p *Program) *Program {
		if p == nil {
			return nil
		}
		q := *p
		q.Env, q.SecretEnv = fill(p.Env, p.SecretEnv), nil
		return &q
	}
	out := *t
	out.Env, out.SecretEnv = fill(t.Env, t.SecretEnv), nil
	out.Steps = slices.Clone(t.Steps)
	for i := range out.Steps {
		s := &out.Steps[i]
		s.Setup, s.Oracle, s.Grade = program(s.Setup), program(s.Oracle), *program(&s.Grade)
	}
	_, needed := t.Secrets()
	for _, name := range needed {
		if values[name] == "" {
			missing = append(missing, name)
		}
	}
	slices.Sort(used)
	return &out, slices.Compact(used), missing
}
