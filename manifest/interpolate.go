// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// trialPrefix marks the variables that have a value per trial only. They stay in
// the text; the worker puts the values in.
const trialPrefix = "TIDEMILL_"

// LoadOptions says where the values of variables come from.
type LoadOptions struct {
	// Vars win over LookupEnv.
	Vars map[string]string
	// LookupEnv is usually os.LookupEnv; nil knows no variable.
	LookupEnv func(string) (string, bool)
	// Runtimes are the runtime types that exist; empty accepts any word.
	Runtimes []RuntimeType

	// uses gathers the names that are asked for, if it isn't nil.
	uses map[string]bool
	// secrets are names that the run file lists as secrets.
	secrets map[string]bool
	// imageless is set where a Harbor task has to say what its image is: it has the name
	// of the runtime that needs one.
	imageless string
}

func (o LoadOptions) lookup(name string) (string, bool) {
	if v, ok := o.Vars[name]; ok {
		return v, true
	}
	if o.LookupEnv == nil {
		return "", false
	}
	v, ok := o.LookupEnv(name)
	if !ok {
		return "", false
	}
	return v, true
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	reference    = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)
)

// referenceError says what is wrong with a ${…}.
type referenceError struct{ text, fix string }

// expand replaces ${NAME} and ${NAME:-default} and turns $$ into $. Any other dollar
// stays. get returns a value, or an error that is told.
func expand(s string, get func(name string) (string, bool, *referenceError)) (string, []referenceError) {
	if !strings.Contains(s, "$") {
		return s, nil
	}
	var out strings.Builder
	var errs []referenceError
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			out.WriteString(s)
			return out.String(), errs
		}
		out.WriteString(s[:i])
		s = s[i:]
		switch {
		case strings.HasPrefix(s, "$$"):
			out.WriteByte('$')
			s = s[2:]
		case !strings.HasPrefix(s, "${"):
			out.WriteByte('$')
			s = s[1:]
		default:
			m := reference.FindStringSubmatch(s)
			if m == nil || strings.Contains(m[3], "${") {
				errs = append(errs, notVariable(s))
				out.WriteString("${")
				s = s[2:]
				continue
			}
			s = s[len(m[0]):]
			out.WriteString(value(m, get, &errs))
		}
	}
}

func value(m []string, get func(string) (string, bool, *referenceError), errs *[]referenceError) string {
	name, hasDefault, fallback := m[1], m[2] != "", m[3]
	if strings.HasPrefix(name, trialPrefix) {
		return m[0]
	}
	v, ok, err := get(name)
	switch {
	case err != nil:
		*errs = append(*errs, *err)
	case hasDefault && v == "":
		return fallback
	case !ok:
		*errs = append(*errs, referenceError{
			"variable " + name + " has no value",
			fmt.Sprintf("set it, or give it a default: ${%s:-…}", name),
		})
	}
	return v
}

// cutReference shortens s to the reference at its start.
func cutReference(s string) string {
	if i := strings.IndexAny(s, "}\n"); i >= 0 {
		return s[:i+1]
	}
	return s
}

// escape is the inverse of [expand] for text that has no variables left but those of
// the trial.
func escape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '$' {
			m := reference.FindStringSubmatch(s[i:])
			if m != nil && strings.HasPrefix(m[1], trialPrefix) && !strings.Contains(m[3], "${") {
				out.WriteString(m[0])
				i += len(m[0]) - 1
				continue
			}
			out.WriteByte('$')
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// expander fills variables into a tree.
type expander struct {
	c       *collector
	options LoadOptions
	// secrets are the names in agent.secrets.
	secrets map[string]bool
	// used holds the scalars that had a variable in them, bad those that had one
	// without a value.
	used, bad map[*yaml.Node]bool
}

func newExpander(c *collector, o LoadOptions, secrets map[string]bool) *expander {
	return &expander{c: c, options: o, secrets: secrets, used: map[*yaml.Node]bool{}, bad: map[*yaml.Node]bool{}}
}

func (x *expander) tree(n *yaml.Node, entry string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			x.tree(n.Content[i+1], join(entry, n.Content[i].Value))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			x.tree(item, index(entry, i))
		}
	case yaml.ScalarNode:
		x.scalar(n, entry)
	}
}

func (x *expander) scalar(n *yaml.Node, entry string) {
	text, errs := expand(n.Value, x.get)
	for _, e := range errs {
		x.c.add(Problem{Line: n.Line, Col: n.Column, Entry: entry, Text: e.text, Fix: e.fix})
		x.bad[n] = true
	}
	if text == n.Value {
		return
	}
	n.Value = text
	x.used[n] = true
	if n.Style == 0 {
		n.Tag = "" // a plain 5 that came out of a variable is a number again
		if isNull(n) && text != "" {
			n.Tag = "!!str"
		}
	}
}

func (x *expander) get(name string) (string, bool, *referenceError) {
	if x.options.uses != nil {
		x.options.uses[name] = true
	}
	if x.secrets[name] || secretName(name) {
		return "", false, &referenceError{
			"the value of " + name + " is a secret and would be stored with the run",
			"list " + name + " under agent.secrets and let the program read it from its environment",
		}
	}
	v, ok := x.options.lookup(name)
	return v, ok, nil
}

// join and index build entry paths.
func join(entry, key string) string {
	if entry == "" {
		return key
	}
	return entry + "." + key
}

func index(entry string, i int) string { return fmt.Sprintf("%s[%d]", entry, i) }
