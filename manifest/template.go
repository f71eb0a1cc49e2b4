// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

const (
	// maxRendered bounds an instruction: a template may repeat a field.
	maxRendered = 16 << 20
	// maxVariable is what the kernel takes for one NAME=value and its zero byte.
	maxVariable = 128 << 10
)

func (p *datasetPack) checkTemplates(d *decoder) {
	p.instruction = p.template(d, "instruction", p.spec.Instruction)
	p.env = map[string]*template.Template{}
	for _, name := range slices.Sorted(maps.Keys(p.spec.Env)) {
		p.env[name] = p.template(d, join("env", name), p.spec.Env[name])
	}
}

var templateLine = regexp.MustCompile(`^template: [^:]*:(\d+:)?(\d+:)? (executing "[^"]*" )?`)

// template parses a template and finds fields that the agent doesn't get.
func (p *datasetPack) template(d *decoder, entry, text string) *template.Template {
	t, err := template.New(entry).Option("missingkey=error").Parse(text)
	if err != nil {
		d.problem(entry, "not a valid template: "+templateLine.ReplaceAllString(err.Error(), ""), "see text/template; a literal {{ is written {{\"{{\"}}")
		return nil
	}
	for _, field := range rootFields(t.Root, true) {
		if !slices.Contains(p.spec.AgentFields, field) {
			d.problem(entry, "uses ."+field+", which is not in agent_fields", suggest(field, p.spec.AgentFields))
		}
	}
	return t
}

// rootFields lists the fields of the row that a template names. Inside range and with
// the dot is something else; there only $.field is the row's. What it doesn't see is
// found when a row is rendered.
func rootFields(n parse.Node, rootDot bool) []string {
	var fields []string
	list := func(l *parse.ListNode, dot bool) {
		if l != nil {
			fields = append(fields, rootFields(l, dot)...)
		}
	}
	branch := func(b *parse.BranchNode, dot bool) {
		fields = append(fields, rootFields(b.Pipe, rootDot)...)
		list(b.List, dot)
		list(b.ElseList, rootDot)
	}
	switch n := n.(type) {
	case *parse.ListNode:
		for _, item := range n.Nodes {
			fields = append(fields, rootFields(item, rootDot)...)
		}
	case *parse.ActionNode:
		fields = rootFields(n.Pipe, rootDot)
	case *parse.PipeNode:
		if n == nil {
			return nil
		}
		for _, command := range n.Cmds {
			for _, arg := range command.Args {
				fields = append(fields, rootFields(arg, rootDot)...)
			}
		}
	case *parse.FieldNode:
		if rootDot {
			fields = append(fields, n.Ident[0])
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			fields = append(fields, n.Ident[1])
		}
	case *parse.IfNode:
		branch(&n.BranchNode, rootDot)
	case *parse.WithNode:
		branch(&n.BranchNode, false)
	case *parse.RangeNode:
		branch(&n.BranchNode, false)
	}
	return fields
}

// rendered is what a row makes of the templates.
type rendered struct {
	instruction string
	env         map[string]string
}

// render fills a row's agent fields in.
func (p *datasetPack) render(fields map[string]any) (rendered, error) {
	var r rendered
	var err error
	if r.instruction, err = execute(p.instruction, "instruction", fields, maxRendered); err != nil {
		return r, err
	}
	r.env = make(map[string]string, len(p.env))
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		v, err := execute(p.env[name], "env."+name, fields, maxVariable-len(name)-2)
		if err != nil {
			return r, err
		}
		if strings.ContainsRune(v, 0) {
			return r, fmt.Errorf("env.%s: holds a zero byte, which no program can be given", name)
		}
		r.env[name] = v
	}
	return r, nil
}

func execute(t *template.Template, entry string, fields map[string]any, most int) (string, error) {
	w := boundedText{left: most}
	if err := t.Execute(&w, fields); errors.Is(err, errTooLong) {
		return "", fmt.Errorf("%s: is longer than %d bytes", entry, most)
	} else if err != nil {
		return "", fmt.Errorf("%s: %s", entry, templateLine.ReplaceAllString(err.Error(), ""))
	}
	return w.String(), nil
}

var errTooLong = errors.New("too long")

type boundedText struct {
	strings.Builder
	left int
}

func (b *boundedText) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errTooLong
	}
	return b.Builder.Write(p)
}
