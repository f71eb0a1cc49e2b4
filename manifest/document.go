// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Limits on what a person writes. They keep a hostile file (deep nesting, aliases of
// aliases) from costing more than its size.
const (
	maxFileBytes = 4 << 20
	maxNodes     = 200_000
	maxDepth     = 64
)

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// readDocument parses the only document of a file into a tree without aliases, whose
// root is a mapping. What is wrong goes to c; then it returns nil.
func readDocument(c *collector, data []byte) *yaml.Node {
	if len(data) > maxFileBytes {
		c.add(Problem{Text: fmt.Sprintf("is %d bytes long", len(data)), Fix: "at most 4 MiB are read"})
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := decodeNode(dec, &doc); errors.Is(err, io.EOF) {
		c.add(Problem{Line: 1, Text: "is empty", Fix: "write keys and values, such as version: 1"})
		return nil
	} else if err != nil {
		c.add(syntaxProblem(err, data))
		return nil
	}
	var more yaml.Node
	if err := decodeNode(dec, &more); err == nil {
		c.add(Problem{Line: more.Line, Text: "a second document begins here", Fix: "write one document per file"})
		return nil
	} else if !errors.Is(err, io.EOF) {
		c.add(syntaxProblem(err, data))
		return nil
	}
	r := resolver{c: c, left: maxNodes}
	root := r.resolve(&doc, 0)
	if root == nil || len(c.found) > 0 {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		c.add(Problem{Line: max(root.Line, 1), Text: "want keys and values at the top, got " + describe(root)})
		return nil
	}
	return root
}

// decodeNode shields us from the parser: some broken input makes it panic.
func decodeNode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return dec.Decode(n)
}

func syntaxProblem(err error, data []byte) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	p := Problem{Text: "not valid YAML: " + text}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Text = "not valid YAML: " + strings.TrimPrefix(text, m[0])
		lines := bytes.SplitN(data, []byte("\n"), p.Line+2)
		aboutTabs := strings.Contains(text, "tab character") || strings.Contains(text, "cannot start any token")
		if line := tabIndents(lines, p.Line); aboutTabs && line > 0 {
			return Problem{Line: line, Text: "not valid YAML: a tab stands in the indentation", Fix: "tabs can't indent YAML; use spaces"}
		}
		// The parser names the line where it began to be lost, or the one before.
		if at := min(max(p.Line-1, 0), len(lines)); bytes.Contains(bytes.Join(lines[at:min(at+2, len(lines))], nil), []byte("${")) {
			p.Fix = `inside [] and {} a variable needs quotes: "${NAME}"`
		}
	}
	return p
}

// tabIndents returns the line with a tab in its indentation that made the parser stop at a
// line: that one, or a neighbour; 0 when there is none.
func tabIndents(lines [][]byte, stopped int) int {
	for line := max(stopped-1, 1); line <= min(stopped+1, len(lines)); line++ {
		text := lines[line-1]
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if bytes.ContainsRune(indent, '\t') && len(indent) < len(bytes.TrimRight(text, "\r")) {
			return line
		}
	}
	return 0
}

// resolver copies a tree, putting in the place of each alias what it stands for, so
// that later passes may change any node.
type resolver struct {
	c    *collector
	left int
}

func (r *resolver) resolve(n *yaml.Node, depth int) *yaml.Node {
	for n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	r.left--
	if depth > maxDepth || r.left < 0 {
		r.c.add(Problem{Line: n.Line, Col: n.Column, Text: "is nested too deeply or has too many entries"})
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return r.resolve(n.Alias, depth+1)
	}
	if n.Style&yaml.TaggedStyle != 0 {
		r.c.add(Problem{Line: n.Line, Col: n.Column, Text: "has the tag " + n.Tag, Fix: "leave tags out"})
	}
	out := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Line: n.Line, Column: n.Column}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.ShortTag() == "!!merge" {
			r.c.add(Problem{Line: child.Line, Col: child.Column, Text: "merge keys (<<) are not known here", Fix: "write the keys out"})
			return nil
		}
		copied := r.resolve(child, depth+1)
		if copied == nil {
			return nil
		}
		out.Content = append(out.Content, copied)
	}
	return out
}

// cloneTree copies a resolved tree.
func cloneTree(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		out.Content[i] = cloneTree(child)
	}
	return &out
}

// child returns the value of a key of a mapping, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// isNull says that a key was written without a value, which counts as left out.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// describe names what was found, for messages.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case isNull(n):
		return "nothing"
	case n.ShortTag() == "!!str":
		return quote(n.Value)
	}
	return clip(n.Value)
}

// quote and clip keep messages short.
func quote(s string) string { return strconv.Quote(clip(s)) }

func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
