// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
)

// harborLab has Harbor tasks in the place of a dataset: the value is their task.toml.
func harborLab(t *testing.T, tasks map[string]string) *lab {
	t.Helper()
	l := newLab(t)
	for name, toml := range tasks {
		l.write("tasks/"+name+"/task.toml", toml)
		l.write("tasks/"+name+"/instruction.md", "do it")
		l.write("tasks/"+name+"/tests/test.sh", "")
	}
	l.write("run.yaml", strings.NewReplacer("[pack]", "[tasks]", "network_policy: no_internet\n", "").Replace(runFile))
	return l
}

func TestHarborAsks(t *testing.T) {
	l := harborLab(t, map[string]string{
		"a": "[environment]\ndocker_image = \"x:1\"\n[agent]\nnetwork_mode = \"no-network\"\n[verifier]\nuser = \"judge\"\n",
		"b": "[agent]\nuser = 1000\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"b.org\"]\n[environment]\ngpus = 2\n",
		"c": "odd = 1\n[environment.env]\nKEY = \"${SOME_KEY:-none}\"\nJUDGE = \"${JUDGE_KEY}\"\n",
		"d": "[environment]\nos = \"windows\"\n",
		"e": "[environment]\ngpus = 8\nnot toml",
	})
	l.pack("pack", "x", "y")
	l.write("run.yaml", strings.Replace(runFile, "[pack]", "[tasks, pack]", 1))
	run := l.load("select: {exclude: [d, e]}\ntask_secrets: [JUDGE_KEY]\n")[0]
	run.NetworkPolicy = manifest.TaskNetwork
	seen := map[string]int{}
	d, err := producer.NewDraft(t.Context(), run, l.options(), l.dir, func(task *manifest.Task) error {
		seen[task.ID]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() //nolint:errcheck // removes files of a temporary directory
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 1, "x": 1}, seen); diff != "" {
		t.Errorf("asked about (-want +got):\n%s", diff)
	}
	want := manifest.Asks{
		Networks: []manifest.Network{{Policy: "full_internet"}, {Policy: "limited_internet", Allow: []string{"b.org"}}, {Policy: "no_internet"}},
		Users:    []string{"1000", "judge"}, GPUs: 2,
	}
	if diff := cmp.Diff(want, d.Asks); diff != "" {
		t.Errorf("asks (-want +got):\n%s", diff)
	}
	var demands []string
	for _, x := range d.Demands {
		demands = append(demands, fmt.Sprintf("%s: %d, %s", x.What, x.Tasks, x.First))
	}
	if diff := cmp.Diff([]string{
		"network no_internet: 2, a", "network full_internet: 3, a", "an image of its own: 1, a", "the user judge: 1, a",
		"network limited_internet: 1, b", "the user 1000: 1, b", "GPUs: 1, b", "the secret JUDGE_KEY: 1, c",
	}, demands); diff != "" {
		t.Errorf("demands (-want +got):\n%s", diff)
	}
	if len(d.Warnings) != 2 || d.Warnings[0].Entry != "odd" || !strings.Contains(d.Warnings[1].Text, "SOME_KEY, and will get a default") {
		t.Errorf("warnings %v", d.Warnings)
	}

	p := l.producer()
	sub, err := p.Submit(t.Context(), d, producer.Options{RunID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := dispatch.LoadRun(t.Context(), l.store, "r")
	if err != nil || !cmp.Equal(rec.Asks, want) || sub.Enqueued != 5 {
		t.Errorf("stored %+v, %v; %d enqueued", rec.Asks, err, sub.Enqueued)
	}
	if needs := dispatch.Needs(rec); !slices.Contains(needs, "gpu") {
		t.Errorf("needs %v", needs)
	}
}

func TestHarborPolicyOfTheRun(t *testing.T) {
	l := harborLab(t, map[string]string{"a": "", "b": "[environment]\nallow_internet = false"})
	d := l.draft("network_policy: no_internet\n")
	if len(d.Asks.Networks) > 0 || len(d.Warnings) != 1 ||
		d.Warnings[0].Text != `no_internet goes before what tasks ask for: task "a" asks for full_internet` {
		t.Errorf("%+v, %v", d.Asks, d.Warnings)
	}
}

func TestHarborRefusals(t *testing.T) {
	secret := "[verifier.env]\nKEY = \"${SOME_API_KEY}\"\n"
	image := "[environment]\ndocker_image = \"x:1\"\n"
	for name, test := range map[string]struct {
		tasks       map[string]string
		extra, with string
		want        string
	}{
		"secrets": {
			tasks: map[string]string{"a": secret, "b": secret},
			want:  `run.yaml: task_secrets: 2 tasks ask for (the first is "a") the secret SOME_API_KEY; list it under task_secrets`,
		},
		"an oracle": {
			tasks: map[string]string{"a": ""}, with: "{name: oracle}",
			want: `run.yaml: agent.name: agent oracle: task "a" has no solution; leave the task out with select.exclude`,
		},
		"an oracle of a step": {
			tasks: map[string]string{"a": "[[steps]]\nname = \"s\""}, with: "{name: oracle}",
			want: `task "a" has no solution in step "s"`,
		},
		"problems of selected tasks": {
			tasks: map[string]string{"a": "", "b": "[environment.tpu]", "c": "x"}, extra: "select: {tasks: [\"[ab]\"]}\n",
			want: "tasks/b/task.toml:1: environment.tpu: TPUs are not supported",
		},
		"images": {
			tasks: map[string]string{"a": image, "b": image}, extra: "network_policy: full_internet\n",
			want: "run.yaml: task \"a\" needs an image (x:1), and runtime subprocess has none; use runtime.type docker\n" +
				"$DIR/run.yaml: task \"b\" needs an image",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := harborLab(t, test.tasks)
			l.write("tasks/a/steps/s/instruction.md", "")
			file := strings.Replace(runFile, "[pack]", "[tasks]", 1)
			file = strings.Replace(file, "network_policy: no_internet\n", "", 1)
			if test.with != "" {
				file = strings.Replace(file, "{name: script, command: [run]}", test.with, 1)
			}
			if name == "images" {
				file = strings.Replace(file, "scripted", "subprocess", 1)
			}
			l.write("run.yaml", file)
			_, err := l.tryDraft(test.extra)
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), l.dir, "$DIR"), test.want) {
				t.Errorf("said %v; want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "tasks/c") {
				t.Errorf("told of a task that isn't selected: %v", err)
			}
		})
	}
}

// A check that refuses is told with its task, and of very many not each.
func TestTaskChecks(t *testing.T) {
	tasks := map[string]string{}
	for i := range 13 {
		tasks[fmt.Sprintf("t%02d", i)] = ""
	}
	l := harborLab(t, tasks)
	cause := errors.New("no such thing")
	_, err := producer.NewDraft(t.Context(), l.load("")[0], l.options(), l.dir, func(task *manifest.Task) error {
		return fmt.Errorf("task %s: %w", task.ID, cause)
	})
	var refused *producer.RefusedTasksError
	if !errors.As(err, &refused) || !errors.Is(err, cause) {
		t.Fatalf("got %v", err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 11 || !strings.HasSuffix(lines[0], "run.yaml: task t00: no such thing") || !strings.HasSuffix(lines[10], "run.yaml: and 3 more tasks like these") {
		t.Errorf("said %q", lines)
	}
}
