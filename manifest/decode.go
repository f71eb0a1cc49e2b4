// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	durationType = reflect.TypeFor[Duration]()
	sizeType     = reflect.TypeFor[Size]()
)

// decoder fills Go values from a tree, strictly: unknown and repeated keys and wrong
// types are problems. The keys are the yaml tags of the types.
type decoder struct {
	c *collector
	// places remembers where each entry was written, for the checks that follow.
	places map[string]*yaml.Node
	// used holds scalars that had a variable in them: those may be quoted numbers.
	used map[*yaml.Node]bool
	// bad holds what was reported already; one problem per value is enough.
	bad map[*yaml.Node]bool
	// root is the type of the whole file, once decoding began.
	root reflect.Type
	// unknown is told of unknown keys where they do no harm; nil makes them problems.
	unknown func(Problem)
	// typed says that the file's language tells text from numbers, so that one isn't taken
	// for the other.
	typed bool
}

// nodeDecoder is a type that reads its own value.
type nodeDecoder interface {
	decodeNode(d *decoder, n *yaml.Node, entry string)
}

// newDecoder takes over from the expander of the same tree.
func newDecoder(x *expander) *decoder {
	return &decoder{c: x.c, places: map[string]*yaml.Node{}, used: x.used, bad: x.bad}
}

// given says whether the file has the entry.
func (d *decoder) given(entry string) bool { return d.places[entry] != nil }

// problem reports something about an entry, at its line or its parent's; unless that
// one was reported already.
func (d *decoder) problem(entry, text, fix string) {
	p := Problem{Entry: entry, Text: text, Fix: fix}
	for at := entry; ; {
		if n := d.places[at]; n != nil {
			if d.bad[n] {
				return
			}
			p.Line, p.Col = n.Line, n.Column
			break
		}
		if at == "" {
			break
		}
		at = at[:max(0, strings.LastIndexAny(at, ".["))]
	}
	d.c.add(p)
}

// require reports the entries that are missing.
func (d *decoder) require(entries ...string) {
	for _, e := range entries {
		if !d.given(e) {
			d.problem(e, "is missing", "")
		}
	}
}

func (d *decoder) wrong(n *yaml.Node, entry, want, fix string) {
	got := describe(n)
	if d.typed && n.Kind == yaml.MappingNode {
		got = "a table"
	}
	d.c.add(Problem{Line: n.Line, Col: n.Column, Entry: entry, Text: "want " + want + ", got " + got, Fix: fix})
	d.bad[n] = true
}

// tableWord is what the file's language calls keys with values.
func (d *decoder) tableWord() string {
	if d.typed {
		return "a table"
	}
	return "keys and values"
}

// decode fills v, which is settable. A key without a value counts as left out.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, entry string) {
	if isNull(n) {
		return
	}
	d.places[entry] = n
	if d.bad[n] {
		return
	}
	if own, ok := v.Addr().Interface().(nodeDecoder); ok {
		own.decodeNode(d, n, entry)
		return
	}
	switch {
	case v.Type() == durationType:
		decodeText(d, n, v, entry, "a duration", ParseDuration)
		return
	case v.Type() == sizeType:
		decodeText(d, n, v, entry, "a size", ParseSize)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), entry)
	case reflect.Struct:
		d.decodeStruct(n, v, entry)
	case reflect.Map:
		d.decodeMap(n, v, entry)
	case reflect.Slice:
		d.decodeSlice(n, v, entry)
	case reflect.Interface:
		if x := d.decodeAny(n, entry); x != nil {
			v.Set(reflect.ValueOf(x))
		}
	default:
		d.decodeScalar(n, v, entry)
	}
}

func decodeText[T any](d *decoder, n *yaml.Node, v reflect.Value, entry, want string, parse func(string) (T, error)) {
	if n.Kind != yaml.ScalarNode {
		d.wrong(n, entry, want, "")
		return
	}
	x, err := parse(n.Value)
	if err != nil {
		text, fix, _ := strings.Cut(err.Error(), "; ")
		d.c.add(Problem{Line: n.Line, Col: n.Column, Entry: entry, Text: text, Fix: fix})
		d.bad[n] = true
		return
	}
	v.Set(reflect.ValueOf(x))
}

// pairs calls f for each key of a mapping, once; repeated keys are problems.
func (d *decoder) pairs(n *yaml.Node, entry, want string, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, entry, want, "")
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.wrong(key, entry, "a word as key", "")
			continue
		}
		if first, ok := lines[key.Value]; ok {
			d.c.add(Problem{
				Line: key.Line, Col: key.Column, Entry: join(entry, key.Value),
				Text: fmt.Sprintf("is already given in line %d", first), Fix: "write each key once",
			})
			continue
		}
		lines[key.Value] = key.Line
		f(key, val)
	}
}

func (d *decoder) decodeStruct(n *yaml.Node, v reflect.Value, entry string) {
	fields := fieldsOf(v.Type())
	if d.root == nil {
		d.root = v.Type()
	}
	d.pairs(n, entry, d.tableWord(), func(key, val *yaml.Node) {
		i := slices.Index(fields, key.Value)
		if i < 0 || key.Value == "" {
			p := Problem{
				File: d.c.file, Line: key.Line, Col: key.Column, Entry: join(entry, key.Value),
				Text: "unknown key", Fix: d.suggestKey(key.Value, entry, v.Type()),
			}
			if d.unknown != nil {
				d.unknown(p)
			} else {
				d.c.add(p)
			}
			return
		}
		d.decode(val, v.Field(i), join(entry, key.Value))
	})
}

// fieldsOf returns the keys of a struct by field index, empty for fields without one.
func fieldsOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name != "-" {
			keys[i] = name
		}
	}
	return keys
}

func (d *decoder) decodeMap(n *yaml.Node, v reflect.Value, entry string) {
	if v.Type().Elem().Kind() == reflect.Interface {
		if m, ok := d.decodeAny(n, entry).(map[string]any); ok {
			v.Set(reflect.ValueOf(m))
		} else if n.Kind != yaml.MappingNode {
			d.wrong(n, entry, d.tableWord(), "")
		}
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	d.pairs(n, entry, d.tableWord(), func(key, val *yaml.Node) {
		if isNull(val) && !d.used[val] {
			d.c.add(Problem{
				Line: key.Line, Col: key.Column, Entry: join(entry, key.Value),
				Text: "has no value", Fix: `write "" for an empty one`,
			})
			return
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.decode(val, item, join(entry, key.Value))
		v.SetMapIndex(reflect.ValueOf(key.Value), item)
	})
}

func (d *decoder) decodeSlice(n *yaml.Node, v reflect.Value, entry string) {
	if n.Kind != yaml.SequenceNode {
		fix := "write [one, two], or a line with a dash for each"
		if d.typed {
			fix = `write ["one", "two"]`
		}
		d.wrong(n, entry, "a list", fix)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if isNull(item) {
			d.wrong(item, index(entry, i), "a value", "")
			continue
		}
		d.decode(item, v.Index(i), index(entry, i))
	}
}

func (d *decoder) decodeScalar(n *yaml.Node, v reflect.Value, entry string) {
	tag := n.ShortTag()
	if d.used[n] && n.Style != 0 {
		tag = (&yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}).ShortTag()
	}
	plain := yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}
	scalar := n.Kind == yaml.ScalarNode
	switch v.Kind() {
	case reflect.String:
		if !scalar || d.typed && tag != "!!str" {
			fix := ""
			if scalar {
				fix = "put it in quotes"
			}
			d.wrong(n, entry, "text", fix)
			return
		}
		v.SetString(n.Value) // verbatim: 3.10 is a version, not 3.1
	case reflect.Bool:
		if !scalar || tag != "!!bool" {
			d.wrong(n, entry, "true or false", "")
			return
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int, reflect.Int64:
		var x int64
		if !scalar || tag != "!!int" || plain.Decode(&x) != nil {
			d.wrong(n, entry, "a whole number", "")
			return
		}
		v.SetInt(x)
	case reflect.Float64:
		var x float64
		if !scalar || (tag != "!!int" && tag != "!!float") || plain.Decode(&x) != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			d.wrong(n, entry, "a number", "")
			return
		}
		v.SetFloat(x)
	default:
		panic(fmt.Sprintf("manifest: no rule for %s", v.Type()))
	}
}

// decodeAny reads what has no type of its own (options, metadata). The result can be
// written as JSON.
func (d *decoder) decodeAny(n *yaml.Node, entry string) any {
	d.places[entry] = n
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		d.pairs(n, entry, "", func(key, val *yaml.Node) {
			m[key.Value] = d.decodeAny(val, join(entry, key.Value))
		})
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = d.decodeAny(item, index(entry, i))
		}
		return list
	}
	switch n.ShortTag() {
	case "!!bool", "!!null":
		var x any
		_ = n.Decode(&x)
		return x
	case "!!int":
		var x int64
		if n.Decode(&x) != nil {
			d.wrong(n, entry, "a number of 64 bits", "")
		}
		return x
	case "!!float":
		var x float64
		if n.Decode(&x) != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			d.wrong(n, entry, "a finite number", "")
			return nil
		}
		return x
	}
	return n.Value
}
