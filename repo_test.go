// SPDX-License-Identifier: Apache-2.0

package tidemill_test

// The rules of this repository, as tests. Each has its reason beside it. The
// checkers take content and return complaints, so that repo_selftest_test.go can
// show that each of them can fail.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// file is one file of the repository; its path is relative, with slashes.
type file struct {
	path string
	body []byte
}

// repository reads what is under version control, or would be: everything but
// directories that hold what is built, fetched or left by runs.
func repository(t *testing.T) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && p != "." && p != ".ci"
			if hidden || p == "bin" || p == "results" || p == "tidemill-work" || p == "tidemill-debug" || p == "man" {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || strings.HasSuffix(p, ".test") {
			return nil
		}
		body, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		files = append(files, file{p, body})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// each applies a checker to every file.
func each(t *testing.T, check func(file) []string) {
	t.Helper()
	for _, f := range repository(t) {
		for _, complaint := range check(f) {
			t.Error(complaint)
		}
	}
}

// Whoever takes a file out of here must still see its licence.
func TestSourceFilesNameTheirLicence(t *testing.T) { each(t, licenceLine) }

func licenceLine(f file) []string {
	if strings.Contains(f.path, "testdata/") {
		return nil
	}
	switch base := path.Base(f.path); {
	case slices.Contains([]string{".go", ".sh", ".py", ".yaml", ".yml"}, path.Ext(base)):
	case base == "Makefile", base == "Dockerfile", bytes.HasPrefix(f.body, []byte("#!")):
	default:
		return nil
	}
	head := strings.SplitN(string(f.body), "\n", 4)
	for _, line := range head[:min(3, len(head))] {
		if line == "// SPDX-License-Identifier: Apache-2.0" || line == "# SPDX-License-Identifier: Apache-2.0" {
			return nil
		}
	}
	return []string{f.path + ": want an SPDX-License-Identifier: Apache-2.0 comment in the first three lines"}
}

// Five hundred lines are where a second idea has moved in.
func TestFilesHoldOneIdea(t *testing.T) { each(t, fileLength) }

const maxLines = 500

func fileLength(f file) []string {
	if !isGo(f.path) || isTest(f.path) {
		return nil
	}
	if n := bytes.Count(f.body, []byte("\n")); n > maxLines {
		return []string{fmt.Sprintf("%s: %d lines; want at most %d", f.path, n, maxLines)}
	}
	return nil
}

// A newcomer reads the package comment first, and tools show only one.
func TestEveryPackageHasOneComment(t *testing.T) {
	for _, complaint := range packageComments(repository(t)) {
		t.Error(complaint)
	}
}

func packageComments(files []file) []string {
	docs := map[string][]string{} // directory → files with a package comment
	var complaints []string
	for _, f := range files {
		if !isGo(f.path) || isTest(f.path) {
			continue
		}
		dir := path.Dir(f.path)
		docs[dir] = append(docs[dir], nil...)
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.body, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			complaints = append(complaints, err.Error())
			continue
		}
		text := parsed.Doc.Text()
		if text == "" && parsed.Doc == nil {
			continue
		}
		docs[dir] = append(docs[dir], f.path)
		want := "Package " + parsed.Name.Name + " "
		if parsed.Name.Name == "main" {
			base := path.Base(dir)
			want = strings.ToUpper(base[:1]) + base[1:] + " "
		}
		if !strings.HasPrefix(text, want) {
			complaints = append(complaints, fmt.Sprintf("%s: the package comment begins %q; want %q and a sentence that a newcomer understands",
				f.path, firstLine(text), want))
		}
	}
	for dir, with := range docs {
		if len(with) != 1 {
			complaints = append(complaints, fmt.Sprintf("%s: %d package comments %v; want one", dir, len(with), with))
		}
	}
	slices.Sort(complaints)
	return complaints
}

// allowedPanics are functions that may panic, by package and name, each with the
// reason why it can't happen to a user.
var allowedPanics = map[string]string{
	"bundle TrialID":                        "three strings and a number always encode",
	"bundle NewPlanWriter":                  "the compressor's options are constants",
	"bundle unzip":                          "the decompressor's options are constants",
	"internal/dispatch Body":                "two numbers always encode",
	"tools/s3server main":                   "it is a command, for tests",
	"runtime/subprocess/internal/nest Main": "in the helper process it is the program, and nothing of the real one may run",
	"manifest decodeScalar":                 "a field of the run file's types without a rule shows in the first test",
	"manifest Sum":                          "loading lets only JSON into options, and all else has types that encode",
}

// Output and endings are the business of commands; a library that prints or exits
// takes them out of its caller's hands. A global logger can't be injected, and so
// can't be tested or told apart between two workers in one process.
func TestLibrariesDontPrintOrExit(t *testing.T) {
	each(t, func(f file) []string { return printsAndPanics(f, allowedPanics) })
}

var banned = regexp.MustCompile(`^(fmt\.Print(|f|ln)|log\.(Print|Fatal|Panic)(|f|ln)|os\.Exit|panic|print|println)$`)

func printsAndPanics(f file, allowed map[string]string) []string {
	if !isGo(f.path) || isTest(f.path) || isSuite(path.Dir(f.path)) || strings.HasPrefix(f.path, "cmd/") {
		return nil
	}
	fset, parsed, complaints := parse(f)
	for _, imp := range parsed.Imports {
		if p := strings.Trim(imp.Path.Value, `"`); p == "log" || p == "log/slog" || p == "github.com/rs/zerolog/log" {
			complaints = append(complaints, fmt.Sprintf("%s: imports %s; take a zerolog.Logger instead", fset.Position(imp.Pos()), p))
		}
	}
	for _, decl := range parsed.Decls {
		owner := declared(decl)
		ast.Inspect(decl, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !banned.MatchString(callee(call)) {
				return true
			}
			if allowed[path.Dir(f.path)+" "+owner] == "" {
				complaints = append(complaints, fmt.Sprintf("%s: %s in %s; return an error, or give the reason in allowedPanics",
					fset.Position(call.Pos()), callee(call), owner))
			}
			return true
		})
	}
	return complaints
}

// A test that sleeps is slow on a fast machine and fails on a slow one. In a bubble of
// synctest nobody waits. Where nothing but time will do, a comment beside the call says
// why.
func TestTestsDontSleep(t *testing.T) { each(t, sleeps) }

func sleeps(f file) []string {
	if !isTest(f.path) && !isSuite(path.Dir(f.path)) {
		return nil
	}
	if !isGo(f.path) {
		return nil
	}
	fset, parsed, complaints := parse(f)
	commented := map[int]bool{}
	for _, group := range parsed.Comments {
		commented[fset.Position(group.Pos()).Line] = true
		commented[fset.Position(group.End()).Line] = true
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && callee(call) == "synctest.Test" {
			return false
		}
		if ok && callee(call) == "time.Sleep" {
			if line := fset.Position(call.Pos()).Line; !commented[line] && !commented[line-1] {
				complaints = append(complaints, fmt.Sprintf("%s: time.Sleep without a reason; wait for an event, or say why in a comment", fset.Position(call.Pos())))
			}
		}
		return true
	})
	return complaints
}

// Our contract is called runtime. A reader must never wonder which one is meant.
func TestTheStandardRuntimeIsCalledGoruntime(t *testing.T) { each(t, goruntime) }

func goruntime(f file) []string {
	if !isGo(f.path) {
		return nil
	}
	fset, parsed, complaints := parse(f)
	for _, imp := range parsed.Imports {
		if imp.Path.Value == `"runtime"` && (imp.Name == nil || imp.Name.Name != "goruntime") {
			complaints = append(complaints, fmt.Sprintf("%s: want goruntime %q", fset.Position(imp.Pos()), "runtime"))
		}
	}
	return complaints
}

// A replace directive works on one machine and in no other module. The go directive
// is the version that everybody tests with.
func TestGoModIsPlain(t *testing.T) {
	for _, mod := range []string{"go.mod", "tools/go.mod"} {
		out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", mod).Output()
		if err != nil {
			t.Fatalf("go mod edit -json %s: %v", mod, err)
		}
		for _, complaint := range plainModule(mod, out) {
			t.Error(complaint)
		}
	}
}

func plainModule(name string, body []byte) []string {
	var mod struct {
		Go      string
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal(body, &mod); err != nil {
		return []string{err.Error()}
	}
	var complaints []string
	for _, r := range mod.Replace {
		complaints = append(complaints, fmt.Sprintf("%s: replace of %s; want none", name, r.Old.Path))
	}
	if want := "1.26.8"; mod.Go != want {
		complaints = append(complaints, fmt.Sprintf("%s: go %s; want go %s", name, mod.Go, want))
	}
	return complaints
}

// What is written here must mean something elsewhere, and other people's test data
// must not be copied: the marks by which they find copies are looked for.
func TestNothingOfThisMachine(t *testing.T) {
	foreign := machinePaths(t)
	each(t, func(f file) []string { return outsiders(f, foreign) })
}

var outside = regexp.MustCompile(`(?i)(/home/[a-z]|/Users/[a-z]|/ro` + `ot/|can` + `ary guid|benchmark data should ` + `never appear)`)

func outsiders(f file, foreign []string) []string {
	var complaints []string
	for i, line := range strings.Split(string(f.body), "\n") {
		if found := outside.FindString(line); found != "" {
			complaints = append(complaints, fmt.Sprintf("%s:%d: %q belongs to one machine or to other people's data", f.path, i+1, found))
		}
		for _, p := range foreign {
			if strings.Contains(line, p) {
				complaints = append(complaints, fmt.Sprintf("%s:%d: %q is a path of this machine", f.path, i+1, p))
			}
		}
	}
	return complaints
}

// machinePaths are the checkout and what lies beside it.
func machinePaths(t *testing.T) []string {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	parent := filepath.Dir(root)
	if parent == string(filepath.Separator) || parent == filepath.Clean(os.TempDir()) {
		return []string{root + "/"}
	}
	beside, err := os.ReadDir(parent)
	if err != nil {
		return []string{root + "/"}
	}
	var paths []string
	for _, d := range beside {
		if d.IsDir() {
			paths = append(paths, filepath.Join(parent, d.Name())+"/")
		}
	}
	return paths
}

func isGo(p string) bool   { return strings.HasSuffix(p, ".go") && !strings.Contains(p, "testdata/") }
func isTest(p string) bool { return strings.HasSuffix(p, "_test.go") }

// isSuite reports whether a package is there for tests only.
func isSuite(dir string) bool {
	return slices.Contains([]string{"queuetest", "runtimetest", "bundletest", "testenv"}, path.Base(dir))
}

func parse(f file) (*token.FileSet, *ast.File, []string) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, f.path, f.body, parser.ParseComments)
	if err != nil {
		return fset, &ast.File{}, []string{err.Error()}
	}
	return fset, parsed, nil
}

// declared returns the name that a declaration declares, the first of several.
func declared(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				return v.Names[0].Name
			}
		}
	}
	return ""
}

// callee returns what a call names: "panic", "time.Sleep".
func callee(call *ast.CallExpr) string {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name
	case *ast.SelectorExpr:
		if pkg, ok := fn.X.(*ast.Ident); ok {
			return pkg.Name + "." + fn.Sel.Name
		}
	}
	return ""
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
