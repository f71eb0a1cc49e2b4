// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// maxProblems is how many problems of one file are told. A person mends a few at a
// time; a file that isn't what it claims to be would have thousands.
const maxProblems = 100

// Problem is one thing that is wrong in a file that a person wrote.
type Problem struct {
	File string
	// Line and Col count from 1; 0 is unknown.
	Line, Col int
	// Entry is the path of the key, such as agent.env.MODEL or packs[1]; empty when
	// the problem is the file's.
	Entry string
	// Text says what is wrong, Fix what would be right; Fix may be empty.
	Text, Fix string
}

// Error returns file:line: entry: text; fix.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteString(":" + strconv.Itoa(p.Line))
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if p.Entry != "" {
		b.WriteString(p.Entry + ": ")
	}
	b.WriteString(p.Text)
	if p.Fix != "" {
		b.WriteString("; " + p.Fix)
	}
	return b.String()
}

// Problems are all that was found, in the order of the file.
type Problems []Problem

// Error returns a line per problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a [Problem].
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// collector gathers the problems of one file. The same problem of several matrix
// combinations counts once.
type collector struct {
	file  string
	found Problems
	seen  map[Problem]bool
}

func newCollector(file string) *collector {
	return &collector{file: file, seen: map[Problem]bool{}}
}

func (c *collector) add(p Problem) {
	p.File = cmp.Or(p.File, c.file)
	if c.seen[p] {
		return
	}
	c.seen[p] = true
	c.found = append(c.found, p)
}

func (c *collector) full() bool { return len(c.found) >= maxProblems }

// err returns the problems in the order of lines, or nil.
func (c *collector) err() error {
	if len(c.found) == 0 {
		return nil
	}
	slices.SortStableFunc(c.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	if len(c.found) > maxProblems {
		rest := len(c.found) - maxProblems
		c.found = append(c.found[:maxProblems:maxProblems],
			Problem{File: c.file, Text: "and " + strconv.Itoa(rest) + " more problems"})
	}
	return c.found
}
