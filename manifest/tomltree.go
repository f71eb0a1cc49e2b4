// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"gopkg.in/yaml.v3"
)

// readTOML parses a TOML file into the tree that [readDocument] makes of YAML, so that
// both are decoded and checked alike. What is wrong goes to c; then it returns nil.
func readTOML(c *collector, data []byte) *yaml.Node {
	if len(data) > maxFileBytes {
		c.add(Problem{Text: fmt.Sprintf("is %d bytes long", len(data)), Fix: "at most 4 MiB are read"})
		return nil
	}
	// Lines come first, because finding them bounds the depth that the parser recurses to.
	lines, deep := tomlLines(data)
	if deep > 0 {
		c.add(Problem{Line: deep, Text: "is nested too deeply, or has a name that is too long"})
		return nil
	}
	var values map[string]any
	if err := decodeTOML(data, &values); err != nil {
		c.add(tomlProblem(err))
		return nil
	}
	b := treeBuilder{c: c, lines: lines, left: maxNodes}
	root := b.node(values, "", 1, 0)
	if len(c.found) > 0 {
		return nil
	}
	return root
}

// decodeTOML shields us from the parser, should some input make it panic.
func decodeTOML(data []byte, v *map[string]any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return toml.Unmarshal(data, v)
}

func tomlProblem(err error) Problem {
	p := Problem{Text: "not valid TOML: " + err.Error()}
	if e, ok := errors.AsType[toml.ParseError](err); ok {
		p.Text, p.Line, p.Col = "not valid TOML: "+e.Message, e.Position.Line, e.Position.Col
	}
	return p
}

// treeBuilder makes nodes of what the parser gave. The parser keeps no places, so they
// come from lines.
type treeBuilder struct {
	c     *collector
	lines map[string]int // by entry
	left  int
}

func (b *treeBuilder) node(v any, entry string, line, depth int) *yaml.Node {
	if at, ok := b.lines[entry]; ok {
		line = at
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: line}
	if b.left--; b.left < 0 || depth > maxDepth {
		if b.left == -1 || depth == maxDepth+1 {
			b.c.add(Problem{Line: line, Text: "is nested too deeply or has too many entries"})
		}
		return n
	}
	switch v := v.(type) {
	case map[string]any:
		b.mapping(n, v, entry, line, depth)
	case string:
		n.Tag, n.Value, n.Style = "!!str", v, yaml.DoubleQuotedStyle
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(v)
	case int64:
		n.Tag, n.Value = "!!int", strconv.FormatInt(v, 10)
	case float64:
		n.Tag, n.Value = "!!float", floatText(v)
	case time.Time:
		n.Tag, n.Value = "!!timestamp", timeText(v)
	default:
		list := reflect.ValueOf(v)
		if list.Kind() != reflect.Slice {
			b.c.add(Problem{Line: line, Entry: entry, Text: fmt.Sprintf("is of a kind that isn't known: %T", v)})
			return n
		}
		n.Kind = yaml.SequenceNode
		for i := range list.Len() {
			n.Content = append(n.Content, b.node(list.Index(i).Interface(), index(entry, i), line, depth+1))
		}
	}
	return n
}

// mapping adds the keys in the order of the file.
func (b *treeBuilder) mapping(n *yaml.Node, m map[string]any, entry string, line, depth int) {
	n.Kind = yaml.MappingNode
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y string) int {
		return cmp.Or(cmp.Compare(b.lines[join(entry, x)], b.lines[join(entry, y)]), cmp.Compare(x, y))
	})
	for _, k := range keys {
		value := b.node(m[k], join(entry, k), line, depth+1)
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: k, Line: value.Line}
		n.Content = append(n.Content, key, value)
	}
}

// floatText writes a number as YAML reads it.
func floatText(v float64) string {
	switch {
	case math.IsNaN(v):
		return ".nan"
	case math.IsInf(v, 0):
		return strings.TrimSuffix(strconv.FormatFloat(v, 'g', -1, 64), "Inf") + ".inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// timeText writes a moment as far as the file said it: TOML has dates and times without
// a place in the world.
func timeText(t time.Time) string {
	switch t.Location().String() {
	case "datetime-local":
		return t.Format("2006-01-02T15:04:05.999999999")
	case "date-local":
		return t.Format(time.DateOnly)
	case "time-local":
		return t.Format("15:04:05.999999999")
	}
	return t.Format(time.RFC3339Nano)
}
