// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// inherited is what commands get of the worker's own environment. It is a list of what
// is let through, not of what is held back: nobody knows the names of all secrets.
var inherited = []string{"LANG", "LC_ALL", "TZ"}

func baseEnv(path, home, tmp string) map[string]string {
	env := map[string]string{"PATH": path, "HOME": home, "TMPDIR": tmp}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	return env
}

// environ merges environments, later ones win, into the sorted form that execve takes.
func environ(layers ...map[string]string) (list []string, merged map[string]string, err error) {
	merged = map[string]string{}
	for _, layer := range layers {
		for name, value := range layer {
			if name == "" || strings.ContainsAny(name, "=\x00") {
				return nil, nil, fmt.Errorf("environment variable %q: a name isn't empty and has no '=' or NUL", name)
			}
			if strings.Contains(value, "\x00") {
				return nil, nil, fmt.Errorf("environment variable %s: its value has a NUL", name)
			}
			merged[name] = value
		}
	}
	for name, value := range merged {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list, merged, nil
}
