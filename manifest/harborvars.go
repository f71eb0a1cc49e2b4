// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// harborVariablesFile is a file of an archive of Harbor tasks: the values that variables
// had where the pack was archived. So task.toml stays as its author wrote it, and a worker
// needs none of the variables. It is there only where it says something.
const harborVariablesFile = ".tidemill-variables.json"

// harborVariables is that file.
type harborVariables struct {
	// Values by name.
	Values map[string]string `json:"values,omitempty"`
	// Secrets are names that count as secrets although they don't look like one.
	Secrets []string `json:"secrets,omitempty"`
}

func (v harborVariables) empty() bool { return len(v.Values) == 0 && len(v.Secrets) == 0 }

func readHarborVariables(dir string) (v harborVariables, err error) {
	data, err := readSmall(filepath.Join(dir, harborVariablesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", harborVariablesFile, err)
	}
	return v, err
}

// harborEnv fills variables into env tables of one task.toml.
type harborEnv struct {
	d       *decoder
	stored  harborVariables
	options LoadOptions
	warn    func(Problem)
	// used gathers what was asked for, for the archive.
	used harborVariables
}

func (h *harborEnv) secret(name string) bool {
	return h.options.secrets[name] || slices.Contains(h.stored.Secrets, name) || secretName(name)
}

// table fills in a table. Entries with a secret in them come back in the second map, as
// text for [Task.WithSecrets]. inherited is what both begin with, and has to give way.
func (h *harborEnv) table(entry string, env map[string]string, plain, secret map[string]string) (map[string]string, map[string]string) {
	checkEnv(h.d, entry, env)
	plain, secret = maps.Clone(plain), maps.Clone(secret)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		text, hidden := h.value(join(entry, name), env[name])
		into, other := &plain, secret
		if hidden {
			into, other = &secret, plain
		}
		if *into == nil {
			*into = map[string]string{}
		}
		(*into)[name] = text
		delete(other, name)
	}
	return plain, secret
}

// value fills in one value; hidden says that it holds references to secrets still.
func (h *harborEnv) value(entry, text string) (filled string, hidden bool) {
	parts, errs := pieces(text)
	if len(errs) > 0 {
		h.d.problem(entry, errs[0].text, errs[0].fix)
		return "", false
	}
	for _, p := range parts {
		hidden = hidden || p.name != "" && h.secret(p.name)
	}
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.name == "" && hidden:
			b.WriteString(escape(p.text))
		case p.name == "":
			b.WriteString(p.text)
		case h.secret(p.name):
			h.usedSecret(p.name)
			b.WriteString(p.text)
		default:
			v := h.variable(entry, p)
			if hidden {
				v = escape(v)
			}
			b.WriteString(v)
		}
	}
	return b.String(), hidden
}

func (h *harborEnv) usedSecret(name string) {
	if !secretName(name) && !slices.Contains(h.used.Secrets, name) {
		h.used.Secrets = append(h.used.Secrets, name)
	}
}

// variable returns the value of a variable that is no secret.
func (h *harborEnv) variable(entry string, p piece) string {
	v, ok := h.stored.Values[p.name]
	if !ok {
		if h.options.uses != nil {
			h.options.uses[p.name] = true
		}
		if v, ok = h.options.lookup(p.name); ok {
			if _, given := h.options.Vars[p.name]; !given {
				h.warn(Problem{
					Line: h.lineOf(entry), Entry: entry,
					Text: "takes the value of " + p.name + " from the environment; it is stored with the pack",
				})
			}
		}
	}
	switch {
	case ok:
		if h.used.Values == nil {
			h.used.Values = map[string]string{}
		}
		h.used.Values[p.name] = v
	case !p.hasFallback:
		h.d.problem(entry, "variable "+p.name+" has no value", fmt.Sprintf("set it, or give it with --var %s=…", p.name))
	}
	if v == "" && p.hasFallback {
		return p.fallback
	}
	return v
}

func (h *harborEnv) lineOf(entry string) int {
	if n := h.d.places[entry]; n != nil {
		return n.Line
	}
	return 0
}
