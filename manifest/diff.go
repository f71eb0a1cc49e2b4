// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// DiffRuns says in words what keeps one run from continuing another: a line for each
// key that the plan digest covers and that differs, such as "repeats: 2 → 5".
func DiffRuns(old, new RunRecord) []string {
	var d differ
	d.packs(old.Packs, new.Packs)
	if len(d.lines) == 0 && old.Plan.Tasks != new.Plan.Tasks {
		d.add("tasks", old.Plan.Tasks, new.Plan.Tasks)
	}
	a, b := old.Run, new.Run
	d.add("repeats", a.Repeats, b.Repeats)
	d.add("agent.name", a.Agent.Name, b.Agent.Name)
	d.add("agent.command", a.Agent.Command, b.Agent.Command)
	d.add("agent.files", short(old.AgentFiles), short(new.AgentFiles))
	d.maps("agent.env", a.Agent.Env, b.Agent.Env)
	d.add("agent.secrets", sorted(a.Agent.Secrets), sorted(b.Agent.Secrets))
	d.add("agent.timeout", a.Agent.Timeout, b.Agent.Timeout)
	d.add("grade.primary", a.Grade.Primary, b.Grade.Primary)
	d.add("grade.pass_threshold", a.Grade.PassThreshold, b.Grade.PassThreshold)
	d.add("grade.timeout", a.Grade.Timeout, b.Grade.Timeout)
	d.structs("runtime", reflect.ValueOf(a.Runtime), reflect.ValueOf(b.Runtime))
	d.add("network_policy", a.NetworkPolicy, b.NetworkPolicy)
	d.add("limited_internet_allowlist", sorted(a.LimitedInternetAllowlist), sorted(b.LimitedInternetAllowlist))
	d.add("task_secrets", sorted(a.TaskSecrets), sorted(b.TaskSecrets))
	d.add("agent_processes", a.AgentProcesses, b.AgentProcesses)
	if len(d.lines) == 0 && old.Plan.Digest != new.Plan.Digest {
		d.lines = append(d.lines, "tasks: other ones are selected, or in another order")
	}
	return d.lines
}

type differ struct{ lines []string }

func (d *differ) add(key string, old, new any) {
	if a, b := words(old), words(new); a != b {
		d.lines = append(d.lines, key+": "+a+" → "+b)
	}
}

func (d *differ) packs(old, new []PackRef) {
	for i := range max(len(old), len(new)) {
		var a, b string
		if i < len(old) {
			a = old[i].Name + " " + short(old[i].SHA256)
		}
		if i < len(new) {
			b = new[i].Name + " " + short(new[i].SHA256)
		}
		if i < len(old) && i < len(new) && old[i].SHA256 == new[i].SHA256 {
			continue // the name is not content
		}
		d.add(index("packs", i), a, b)
	}
}

func (d *differ) maps(key string, old, new map[string]string) {
	all := maps.Clone(orEmpty(old))
	maps.Copy(all, new)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		a, inOld := old[k]
		b, inNew := new[k]
		if inOld && inNew {
			d.add(join(key, k), quote(a), quote(b))
		} else if inOld {
			d.add(join(key, k), quote(a), "")
		} else {
			d.add(join(key, k), "", quote(b))
		}
	}
}

// structs compares field by field, by the keys of the file.
func (d *differ) structs(key string, old, new reflect.Value) {
	for i, name := range fieldsOf(old.Type()) {
		a, b := old.Field(i), new.Field(i)
		if a.Kind() == reflect.Struct {
			d.structs(join(key, name), a, b)
			continue
		}
		d.add(join(key, name), a.Interface(), b.Interface())
	}
}

func words(v any) string {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case []string:
		if len(v) > 0 {
			s = "[" + strings.Join(v, ", ") + "]"
		}
	case map[string]any:
		if len(v) > 0 {
			s = fmt.Sprint(v) // sorts the keys
		}
	default:
		s = fmt.Sprint(v)
	}
	if s == "" {
		return "none"
	}
	return s
}

func short(sum string) string { return sum[:min(len(sum), 12)] }
