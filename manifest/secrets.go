// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// A run file is stored with the run and shown to whoever may read the results. These
// checks keep the values of secrets out of it.

// secretPattern are names that hold a secret by convention.
var secretPattern = regexp.MustCompile(`(?i)(_KEY|_TOKEN|_PASSWD|_CREDENTIALS?)$|SECRET|PASSWORD|^(KEY|TOKEN|APIKEY|API_?KEY)$`)

func secretName(name string) bool { return secretPattern.MatchString(name) }

// minSecretValue is the length from which finding a secret's value in the file is no
// accident.
const minSecretValue = 8

// secretNames returns the names under agent.secrets and task_secrets, before anything is
// expanded.
func secretNames(root *yaml.Node) map[string]bool {
	names := map[string]bool{}
	for _, list := range []*yaml.Node{child(child(root, "agent"), "secrets"), child(root, "task_secrets")} {
		if list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, n := range list.Content {
			names[n.Value] = true
		}
	}
	return names
}

func checkTaskSecrets(d *decoder, names []string) {
	for i, name := range names {
		entry := index("task_secrets", i)
		checkEnvName(d, entry, name)
		if slices.Contains(names[:i], name) {
			d.problem(entry, name+" is already in the list", "write each name once")
		}
	}
}

func checkSecrets(d *decoder, a *Agent) {
	for i, name := range a.Secrets {
		entry := index("agent.secrets", i)
		checkEnvName(d, entry, name)
		if slices.Contains(a.Secrets[:i], name) {
			d.problem(entry, name+" is already in the list", "write each name once")
		}
		if _, ok := a.Env[name]; ok {
			d.problem(join("agent.env", name), "is listed under agent.secrets too", "leave it out here; the worker's environment has the value")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		if secretName(name) && !slices.Contains(a.Secrets, name) && a.Env[name] != "" && !strings.HasPrefix(a.Env[name], "${"+trialPrefix) {
			d.problem(join("agent.env", name), "looks like a secret, and its value would be stored with the run",
				"list it under agent.secrets and leave the value out")
		}
	}
}

// checkSecretValues finds the value of a listed secret wherever in the file it was
// written.
func checkSecretValues(d *decoder, o LoadOptions, secrets map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		v, ok := o.lookup(name)
		if !ok || len(v) < minSecretValue {
			continue
		}
		for _, entry := range slices.Sorted(maps.Keys(d.places)) {
			if n := d.places[entry]; n.Kind == yaml.ScalarNode && strings.Contains(n.Value, v) {
				d.problem(entry, "holds the value of the secret "+name+", which would be stored with the run", "leave it out")
			}
		}
	}
}
