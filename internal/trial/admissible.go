// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// Admissible says why a task of a run can't run on a runtime of this type that declares
// these properties: a [runtime.UnsupportedError] that names what, with the task before it;
// nil when nothing is known against it. It is asked for each task before anything is
// submitted; what only opening a sandbox shows is a permanent failure then.
func Admissible(kind string, can runtime.Properties, run *manifest.Run, task *manifest.Task) error {
	refuse := func(feature, value string, supported []string) error {
		return fmt.Errorf("task %s: %w", task.ID, &runtime.UnsupportedError{
			Runtime: kind, Feature: feature, Value: value, Supported: supported,
		})
	}
	if image := imageOf(*run, task); !can.Images && image != (runtime.Image{}) {
		value := image.Ref
		if value == "" {
			value = "built from " + image.Dockerfile
		}
		return refuse("image", value, nil)
	}
	if !can.Images && task.Workdir != "" {
		return refuse("workdir", task.Workdir, nil)
	}
	if user := someUser(task); !can.Users && user != "" {
		return refuse("user", user, nil)
	}
	network := networks(*run, task)
	for _, phase := range phases {
		n, ok := network[phase]
		if ok && !slices.Contains(can.Policies, n.Policy) {
			return refuse("network_policy", fmt.Sprintf("%s in the %s phase", n.Policy, phase), policyNames(can.Policies))
		}
	}
	if limit, value := unboundLimit(can.Limits, Resources(run.Runtime.Resources, task.Resources)); limit != "" {
		return refuse("resources."+limit, value, can.Limits)
	}
	return nil
}

func policyNames(policies []runtime.NetworkPolicy) []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = string(p)
	}
	return names
}

// someUser is a user that a task asks for, "" when it asks for none.
func someUser(task *manifest.Task) string {
	users := slices.Sorted(maps.Values(task.Users))
	for _, s := range task.Steps {
		for _, p := range []*manifest.Program{s.Setup, s.Oracle, &s.Grade} {
			if p != nil {
				users = append(users, p.User)
			}
		}
	}
	for _, user := range users {
		if user != "" {
			return user
		}
	}
	return ""
}

// unboundLimit returns a limit that is asked for and doesn't bind, by its YAML key.
func unboundLimit(bind []string, asked runtime.Resources) (key, value string) {
	v := reflect.ValueOf(asked)
	for i := range v.NumField() {
		if v.Field(i).IsZero() || v.Field(i).Kind() == reflect.Slice {
			continue // acceptable models are no limit of their own
		}
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if !slices.Contains(bind, key) {
			return key, fmt.Sprint(v.Field(i))
		}
	}
	return "", ""
}
