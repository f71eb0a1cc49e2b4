// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// cases is where real Harbor tasks are, or the test is skipped.
func cases(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("TIDEMILL_CASES")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "cases")
	}
	dir, err := filepath.Abs(filepath.Join(root, "harbor", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no Harbor tasks at TIDEMILL_CASES")
	}
	return dir
}

// only returns the one task of a pack.
func only(t *testing.T, p *Pack) (TaskRef, *Task) {
	t.Helper()
	var found TaskRef
	for ref, err := range p.Tasks(t.Context()) {
		if err != nil || found.ID != "" {
			t.Fatalf("%+v beside %q: %v", ref, found.ID, err)
		}
		found = ref
	}
	task, err := p.Task(found)
	if err != nil {
		t.Fatal(err)
	}
	return found, task
}

func TestHarborHelloWorld(t *testing.T) {
	dir := cases(t, "hello-world")
	p := open(t, dir)
	ref, task := only(t, p)
	if ref.ID != "hello-world" || ref.Dir != "hello-world" || p.Name != "hello-world" || !p.Various() || len(p.Artifacts()) > 0 {
		t.Errorf("%+v, %+v", ref, p)
	}
	full := Network{Policy: "full_internet"}
	want := &Task{
		ID: "hello-world", Category: "programming",
		Metadata: map[string]any{
			"author_name": "Alex Shaw", "author_email": "alexgshaw64@gmail.com", "difficulty": "easy",
			"category": "programming", "tags": []any{"trivial"},
		},
		Build:          &Build{Context: filepath.Join(dir, "environment"), Dockerfile: "Dockerfile", Timeout: Duration(10 * time.Minute)},
		Resources:      Resources{CPUs: 1, Memory: 2 << 30},
		Network:        map[string]Network{"setup": full, "agent": full, "grade": full},
		AgentProcesses: "keep",
		Steps: []Step{{
			Instruction:    "Create a file called hello.txt with \"Hello, world!\" as the content.\n",
			IgnoreExitCode: true, AgentTimeout: Duration(2 * time.Minute),
			Oracle: &Program{Command: []string{"/bin/bash", "${TIDEMILL_SOLUTION_DIR}/solve.sh"}, Files: filepath.Join(dir, "solution")},
			Grade: Program{
				Command: []string{"/bin/bash", "${TIDEMILL_TESTS_DIR}/test.sh"}, Files: filepath.Join(dir, "tests"), Timeout: Duration(2 * time.Minute),
			},
		}},
	}
	if diff := cmp.Diff(want, task, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("task (-want +got):\n%s", diff)
	}
}

func TestHarborMultiStep(t *testing.T) {
	dir := cases(t, "cookbook-multi-step")
	_, task := only(t, open(t, dir))
	at := func(elements ...string) string { return filepath.Join(append([]string{dir}, elements...)...) }
	grade := func(step string, env map[string]string) Program {
		return Program{
			Command: []string{"/bin/bash", "${TIDEMILL_TESTS_DIR}/test.sh"}, Timeout: Duration(30 * time.Second),
			Base: at("tests"), Files: at("steps", step, "tests"), Env: env,
		}
	}
	oracle := func(step string) *Program {
		return &Program{Command: []string{"/bin/bash", "${TIDEMILL_SOLUTION_DIR}/solve.sh"}, Files: at("steps", step, "solution")}
	}
	one, half := 1.0, 0.5
	want := []Step{
		{
			Name: "scaffold", Oracle: oracle("scaffold"), Grade: grade("scaffold", nil), IgnoreExitCode: true,
			AgentTimeout: Duration(time.Minute), MinReward: &one,
		},
		{
			Name: "implement", Oracle: oracle("implement"), IgnoreExitCode: true, AgentTimeout: Duration(90 * time.Second), MinReward: &half,
			Grade: grade("implement", map[string]string{"EXPECTED_NAME": "Harbor", "EXPECTED_GREETING": "Hello, Harbor!"}),
			Files: at("steps", "implement", "workdir"),
			Setup: &Program{Command: []string{"bash", "${TIDEMILL_WORKDIR}/setup.sh"}},
			Healthcheck: &Healthcheck{
				Command: []string{"bash", "-c", "test -x /app/greet.sh"}, Interval: Duration(time.Second), Timeout: Duration(5 * time.Second),
				StartInterval: Duration(5 * time.Second), Retries: 3,
			},
		},
		{
			Name: "document", Oracle: oracle("document"), Grade: grade("document", nil), IgnoreExitCode: true,
			AgentTimeout: Duration(time.Minute), Collect: []Collect{{Source: "/app/README.md"}},
		},
	}
	ignore := cmpopts.IgnoreFields(Step{}, "Instruction")
	if diff := cmp.Diff(want, task.Steps, ignore, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	for i, begin := range []string{"Create an executable bash script", "A file `/app/config.txt`", "Create `/app/README.md`"} {
		if !strings.HasPrefix(task.Steps[i].Instruction, begin) {
			t.Errorf("step %d is told %q", i, task.Steps[i].Instruction)
		}
	}
	if task.ID != "harbor/hello-multi-step-full" || task.Workdir != "/app" || task.StepScores != MeanOfGraded ||
		!maps.Equal(task.Env, map[string]string{"GREETER_PROJECT": "hello-multi-step-full"}) ||
		!slices.Equal(task.Collect, []Collect{{Source: "/app/greet.sh"}}) || len(task.Warnings) > 0 {
		t.Errorf("%+v", task)
	}
	about, _ := task.Metadata["task"].(map[string]any)
	if task.Category != "programming" || !cmp.Equal(about["keywords"], []string{"multi-step", "comprehensive", "demo"}) {
		t.Errorf("metadata %v", task.Metadata)
	}
}

func TestHarborMultiContainer(t *testing.T) {
	dir := cases(t, "cookbook-multi-container")
	p := open(t, dir)
	var problems Problems
	for ref, err := range p.Tasks(t.Context()) {
		var one Problem
		if !errors.As(err, &one) || ref.ID != "cookbook-multi-container" {
			t.Fatalf("%+v: %v", ref, err)
		}
		problems = append(problems, one)
	}
	if len(problems) != 1 || !strings.HasSuffix(problems[0].File, "docker-compose.yaml") || problems[0].Text != "tasks of several services are not supported yet" {
		t.Errorf("%v", problems)
	}
	_, err := p.Task(TaskRef{ID: "cookbook-multi-container", Dir: "cookbook-multi-container"})
	if err == nil || !strings.Contains(err.Error(), "several services") {
		t.Errorf("got the task: %v", err)
	}
}

// A directory of tasks is a pack of them, and a task that can't run is one of many.
func TestHarborDataset(t *testing.T) {
	p := open(t, cases(t, ""))
	var good, bad []string
	for ref, err := range p.Tasks(t.Context()) {
		if err != nil {
			bad = append(bad, ref.ID)
		} else {
			good = append(good, ref.ID)
		}
	}
	if diff := cmp.Diff([]string{"harbor/hello-multi-step-full", "hello-world"}, good); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"cookbook-multi-container"}, bad); diff != "" {
		t.Error(diff)
	}
}

// small is a task that says next to nothing.
func small(name string, more map[string]string) map[string]string {
	files := map[string]string{
		name + "/task.toml": "", name + "/instruction.md": "do it", name + "/tests/test.sh": "",
		name + "/environment/Dockerfile": "FROM scratch",
	}
	for k, v := range more {
		files[name+"/"+k] = v
	}
	return files
}

// unpacked archives a pack and opens it as a worker does.
func unpacked(t *testing.T, p *Pack) (*Pack, string) {
	t.Helper()
	var b bytes.Buffer
	sum, err := p.Archive(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), sum)
	if err := Unpack(t.Context(), &b, sum, to); err != nil {
		t.Fatal(err)
	}
	q, err := OpenPack(to, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return q, sum
}

func TestHarborArchive(t *testing.T) {
	dir := write(t, small("one", map[string]string{"tests/data/x": "1", "README.md": "all of it is shipped"}))
	if err := os.Chmod(filepath.Join(dir, "one", "tests", "test.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	single, many := open(t, filepath.Join(dir, "one")), open(t, dir)
	there, sum := unpacked(t, single)
	if again, err := many.Archive(t.Context(), nil); err != nil || again != sum {
		t.Errorf("in a directory of tasks: %s, %v; want %s", again, err, sum)
	}
	if again, err := there.Archive(t.Context(), nil); err != nil || again != sum {
		t.Errorf("archived again: %s, %v; want %s", again, err, sum)
	}
	ref, here := only(t, single)
	task, err := there.Task(ref)
	if err != nil {
		t.Fatal(err)
	}
	if task.ID != here.ID || !strings.HasPrefix(task.Steps[0].Grade.Files, there.Dir) || !strings.HasPrefix(task.Build.Context, there.Dir) {
		t.Errorf("the task on a worker: %+v", task)
	}
	for name, mode := range map[string]fs.FileMode{"one/tests/test.sh": 0o755, "one/tests/data/x": 0o644, "one/README.md": 0o644} {
		info, err := os.Stat(filepath.Join(there.Dir, name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	// What is no task is no part of the pack, and every file of a task is.
	put(t, filepath.Join(dir, "notes.md"), "x")
	if again, _ := many.Archive(t.Context(), nil); again != sum {
		t.Error("a file beside the tasks changes the digest")
	}
	put(t, filepath.Join(dir, "one", "tests", "data", "x"), "2")
	if again, _ := many.Archive(t.Context(), nil); again == sum {
		t.Error("a file of a task doesn't change the digest")
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Directories of tasks may be links: that is how a selection is made by hand.
func TestHarborLinks(t *testing.T) {
	dir := write(t, small("all/one", nil))
	if err := os.Mkdir(filepath.Join(dir, "some"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../all/one", filepath.Join(dir, "some", "two")); err != nil {
		t.Fatal(err)
	}
	p := open(t, filepath.Join(dir, "some"))
	there, _ := unpacked(t, p)
	if _, task := only(t, there); task.ID != "two" || task.Build == nil {
		t.Errorf("%+v", task)
	}
	// One that is opened by a link is called as what the link points at.
	if ref, _ := only(t, open(t, filepath.Join(dir, "some", "two"))); ref.ID != "one" {
		t.Errorf("%+v", ref)
	}
}

func TestHarborReferences(t *testing.T) {
	p := open(t, write(t, small("one", nil)))
	for _, bad := range []TaskRef{{ID: "one"}, {ID: "one", Dir: ".."}, {ID: "one", Dir: "one/.."}, {ID: "two", Dir: "one"}} {
		if task, err := p.Task(bad); err == nil {
			t.Errorf("%+v is %+v", bad, task)
		}
	}
	if refs, err := p.Index(t.Context()); err != nil || len(refs) != 1 || refs["one"].Dir != "one" {
		t.Errorf("%v, %v", refs, err)
	}
}
