// SPDX-License-Identifier: Apache-2.0

package tidemill_test

// Pages are read by people who can't ask back. What a machine can check of them is
// checked here: links, commands, test vectors.

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
)

func isPage(f file) bool {
	return strings.HasSuffix(f.path, ".md") && !strings.Contains(f.path, "testdata/")
}

// A link that leads nowhere says that the page is not kept.
func TestDocsLinks(t *testing.T) {
	files := repository(t)
	pages := map[string][]byte{}
	for _, f := range files {
		pages[f.path] = f.body
	}
	exists := func(p string) bool { _, err := os.Stat(p); return err == nil }
	for _, f := range files {
		if isPage(f) {
			for _, complaint := range links(f, pages, exists) {
				t.Error(complaint)
			}
		}
	}
}

var (
	linkRE    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codeRE    = regexp.MustCompile("`[^`\n]*`")
	headingRE = regexp.MustCompile(`^#{1,6} +(.*?) *$`)
	schemeRE  = regexp.MustCompile(`^[a-z]+:`)
)

func links(f file, pages map[string][]byte, exists func(string) bool) []string {
	var complaints []string
	for _, line := range prose(f.body) {
		for _, m := range linkRE.FindAllStringSubmatch(codeRE.ReplaceAllString(line.text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if schemeRE.MatchString(target) {
				continue
			}
			at, to := fmt.Sprintf("%s:%d", f.path, line.number), f.path
			if target != "" {
				to = path.Join(path.Dir(f.path), target)
			}
			if !exists(to) {
				complaints = append(complaints, fmt.Sprintf("%s: link to %s: there is no %s", at, m[1], to))
				continue
			}
			if body, ok := pages[to]; ok && anchor != "" && !slices.Contains(anchors(body), anchor) {
				complaints = append(complaints, fmt.Sprintf("%s: link to %s: %s has no such heading; it has %v", at, m[1], to, anchors(body)))
			}
		}
	}
	return complaints
}

// anchors returns what the headings of a page are called in links.
func anchors(body []byte) []string {
	var found []string
	for _, line := range prose(body) {
		m := headingRE.FindStringSubmatch(line.text)
		if m == nil {
			continue
		}
		var b strings.Builder
		for _, r := range strings.ToLower(m[1]) {
			switch {
			case r == ' ':
				b.WriteRune('-')
			case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r > 127:
				b.WriteRune(r)
			}
		}
		found = append(found, b.String())
	}
	return found
}

type line struct {
	number int
	text   string
	fenced bool
}

// lines returns a page's lines; fences themselves are left out.
func lines(body []byte) []line {
	var out []line
	fenced := false
	for i, text := range strings.Split(string(body), "\n") {
		if strings.HasPrefix(strings.TrimSpace(text), "```") {
			fenced = !fenced
			continue
		}
		out = append(out, line{i + 1, text, fenced})
	}
	return out
}

// prose returns the lines that aren't in a fenced block.
func prose(body []byte) []line {
	return slices.DeleteFunc(lines(body), func(l line) bool { return l.fenced })
}

// A command that a page names exists, and so do its flags. What is only planned is
// written without the program's name.
func TestDocsCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command; left out with -short")
	}
	binary := filepath.Join(t.TempDir(), "tidemill")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/tidemill").CombinedOutput(); err != nil {
		t.Fatalf("go build ./cmd/tidemill: %v\n%s", err, out)
	}
	manual := map[string]string{}
	help := func(sub string) string {
		if _, ok := manual[sub]; !ok {
			args := append(strings.Fields(sub), "--help")
			out, _ := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
			manual[sub] = string(out)
		}
		return manual[sub]
	}
	for _, f := range repository(t) {
		if isPage(f) {
			for _, complaint := range commands(f, help) {
				t.Error(complaint)
			}
		}
	}
}

var (
	commandRE = regexp.MustCompile("(?:^|[`$ /])tidemill ([a-z][a-z-]*)((?: [^`|;&]+)?)")
	flagRE    = regexp.MustCompile(`(?:^| )(--[a-z][a-z-]*)`)
)

// commands looks at what is set as code: fenced and indented lines, `quoted` pieces. help
// returns the help text of a subcommand; "" is the program's own.
func commands(f file, help func(sub string) string) []string {
	var complaints []string
	for _, l := range lines(f.body) {
		pieces := []string{l.text}
		if !l.fenced && !strings.HasPrefix(l.text, "    ") {
			pieces = codeRE.FindAllString(l.text, -1)
		}
		for _, piece := range pieces {
			for _, m := range commandRE.FindAllStringSubmatch(piece, -1) {
				at := fmt.Sprintf("%s:%d", f.path, l.number)
				sub := m[1]
				if !regexp.MustCompile(`(?m)^ +` + sub + ` `).MatchString(help("")) {
					complaints = append(complaints, fmt.Sprintf("%s: there is no command tidemill %s", at, sub))
					continue
				}
				for _, flag := range flagRE.FindAllStringSubmatch(m[2], -1) {
					if !strings.Contains(help(sub), flag[1]) {
						complaints = append(complaints, fmt.Sprintf("%s: tidemill %s has no %s", at, sub, flag[1]))
					}
				}
			}
		}
	}
	return complaints
}

// Other programs compute trial ids from these vectors.
func TestDocsTrialIDVectors(t *testing.T) {
	page, err := os.ReadFile("docs/bundle-format.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, complaints := trialVectors(page)
	for _, complaint := range complaints {
		t.Error(complaint)
	}
	if rows < 4 {
		t.Errorf("docs/bundle-format.md has %d trial id vectors; want at least 4", rows)
	}
}

var vectorRE = regexp.MustCompile("^\\| `\\[\"([^\"]*)\",\"([^\"]*)\",(\"(?:[^\"\\\\]|\\\\.)*\"),(\\d+)\\]` \\| `([0-9a-f]{32})` \\|$")

func trialVectors(page []byte) (rows int, complaints []string) {
	for _, l := range lines(page) {
		m := vectorRE.FindStringSubmatch(l.text)
		if m == nil {
			continue
		}
		rows++
		task, err := strconv.Unquote(m[3])
		if err != nil {
			complaints = append(complaints, fmt.Sprintf("line %d: %s: %v", l.number, m[3], err))
			continue
		}
		index, _ := strconv.Atoi(m[4])
		if got := bundle.TrialID(m[1], m[2], task, index); got != m[5] {
			complaints = append(complaints, fmt.Sprintf("line %d: the page says %s; TrialID says %s", l.number, m[5], got))
		}
	}
	return rows, complaints
}

// The table of outcomes is read by those who read results, and kept in code.
func TestDocsOutcomeTable(t *testing.T) {
	page, err := os.ReadFile("docs/trial-lifecycle.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range outcomeTable(page) {
		t.Error(complaint)
	}
}

func outcomeTable(page []byte) []string {
	var complaints []string
	stated := map[trial.Ending][]string{}
	for _, l := range lines(page) {
		cells := strings.Split(strings.Trim(l.text, "| "), " | ")
		if name := strings.Trim(cells[0], "`"); len(cells) == 8 && name != cells[0] {
			stated[trial.Ending(name)] = cells[2:]
		}
	}
	yesNo := map[bool]string{true: "yes", false: "no"}
	retried := map[trial.RetryRule]string{
		trial.NoRetry: "no", trial.RetryIfAsked: "if asked", trial.Retry: "yes", trial.OnResume: "on resume",
	}
	for ending, row := range trial.Table {
		want := []string{
			string(row.Status), row.Reason, string(row.Class),
			yesNo[row.Scored], retried[row.Retry], yesNo[row.Commit],
		}
		if got := stated[ending]; !slices.Equal(got, want) {
			complaints = append(complaints, fmt.Sprintf("ending %s: the page says %q; the code says %q", ending, got, want))
		}
		delete(stated, ending)
	}
	for ending := range stated {
		complaints = append(complaints, fmt.Sprintf("ending %s: the code doesn't know it", ending))
	}
	slices.Sort(complaints)
	return complaints
}
