// SPDX-License-Identifier: Apache-2.0

package tidemill_test

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const securityPage = "docs/SECURITY.md"

// What a page says about protection is worth as much as the test behind it.
func TestDocsSecurityNamesTestsThatExist(t *testing.T) {
	files := repository(t)
	i := slices.IndexFunc(files, func(f file) bool { return f.path == securityPage })
	if i < 0 {
		t.Fatalf("there is no %s", securityPage)
	}
	rows, complaints := securityRows(files[i], testsOf(files))
	for _, complaint := range complaints {
		t.Error(complaint)
	}
	if rows < 20 {
		t.Errorf("%s has %d threats; want 20 or more", securityPage, rows)
	}
}

var (
	testFuncRE  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	topicRE     = regexp.MustCompile(`(?m)^\ttopic\("(\w+)", `)
	namedTestRE = regexp.MustCompile("`([a-z][a-z0-9/]*)\\.(Test\\w+)(?:/([\\w-]+))?`")
)

// testsOf returns what a page may name: "package.Test", and with a slash what is below it.
func testsOf(files []file) map[string]bool {
	tests, topics := map[string]bool{}, []string{}
	for _, f := range files {
		if f.path == "runtime/runtimetest/suite.go" {
			for _, m := range topicRE.FindAllStringSubmatch(string(f.body), -1) {
				topics = append(topics, m[1])
			}
		}
	}
	for _, f := range files {
		if script, ok := strings.CutSuffix(f.path, ".txtar"); ok && path.Dir(f.path) == "cmd/tidemill/testdata/script" {
			tests["cmd/tidemill.TestScript/"+path.Base(script)] = true
		}
		if !isTest(f.path) {
			continue
		}
		for _, m := range testFuncRE.FindAllStringSubmatch(string(f.body), -1) {
			name := path.Dir(f.path) + "." + m[1]
			tests[name] = true
			if strings.HasPrefix(m[1], "TestConformance") && strings.HasPrefix(f.path, "runtime/") {
				for _, topic := range topics {
					tests[name+"/"+topic] = true
				}
			}
		}
	}
	return tests
}

// securityRows counts the threats, and complains about those without a test, and about
// tests that there aren't.
func securityRows(page file, tests map[string]bool) (rows int, complaints []string) {
	head := false
	for _, l := range prose(page.body) {
		isRow := strings.HasPrefix(l.text, "|") && !strings.HasPrefix(l.text, "|--")
		named := namedTestRE.FindAllStringSubmatch(l.text, -1)
		for _, m := range named {
			name := m[1] + "." + m[2]
			if m[3] != "" {
				name += "/" + m[3]
			}
			if !tests[name] {
				complaints = append(complaints, fmt.Sprintf("%s:%d: there is no test %s", page.path, l.number, name))
			}
		}
		switch {
		case !strings.HasPrefix(l.text, "|"):
			head = false
		case isRow && !head:
			head = true // the names of the columns
		case isRow:
			rows++
			if len(named) == 0 {
				complaints = append(complaints, fmt.Sprintf("%s:%d: no test proves this: %.60s", page.path, l.number, l.text))
			}
		}
	}
	return rows, complaints
}

func TestSecurityRowsCanFail(t *testing.T) {
	tests := testsOf([]file{
		{"runtime/runtimetest/suite.go", []byte("\ttopic(\"Keep\", testKeep)\n")},
		{"runtime/x/x_test.go", []byte("func TestConformance(t *testing.T) {\nfunc TestX(t *testing.T) {\n")},
		{"cmd/tidemill/testdata/script/gc.txtar", nil},
	})
	const top = "| threat | proven by |\n|---|---|\n"
	for row, want := range map[string]int{
		"| a | `runtime/x.TestX` |": 0, "| a | `runtime/x.TestConformance/Keep` `cmd/tidemill.TestScript/gc` |": 0,
		"| a | nothing |": 1, "| a | `runtime/x.TestY` |": 1, "| a | `runtime/y.TestX` |": 1,
		"| a | `runtime/x.TestConformance/Lost` `cmd/tidemill.TestScript/none` |": 2, "Prose about `runtime/x.TestZ`.": 1,
	} {
		_, got := securityRows(file{securityPage, []byte(top + row + "\n")}, tests)
		if len(got) != want {
			t.Errorf("%s: %d complaints %q; want %d", row, len(got), got, want)
		}
	}
}
