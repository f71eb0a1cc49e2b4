// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
)

func TestDraft(t *testing.T) {
	l := newLab(t, "a", "b", "c", "x/1", "x/2")
	l.write("agent/run.sh", "echo")
	d := l.draft("repeats: 3\nselect: {exclude: [b], limit: 3}\n")
	if d.Plan.Tasks != 3 || d.Plan.Trials != 9 || d.Plan.Parts != 1 || len(d.Plan.Digest) != 64 || d.AgentFiles != "" {
		t.Errorf("plan %+v", d.Plan)
	}
	if len(d.Packs) != 1 || d.Packs[0].Name != "pack" || d.Packs[0].Tasks != 3 || len(d.Packs[0].SHA256) != 64 {
		t.Errorf("packs %+v", d.Packs)
	}
	again := l.draft("repeats: 3\nselect: {exclude: [b], limit: 3}\n")
	if diff := cmp.Diff(d.Plan, again.Plan); diff != "" {
		t.Error(diff)
	}
	if other := l.draft("repeats: 3\nselect: {limit: 3}\n"); other.Plan.Digest == d.Plan.Digest {
		t.Error("other tasks have the same digest")
	}
}

func TestDraftWithAgentFiles(t *testing.T) {
	l := newLab(t, "a")
	l.write("agent/run.sh", "echo")
	l.write("run.yaml", strings.Replace(runFile, "command: [run]", "command: [run], files: ./agent", 1))
	one := l.draft("")
	l.write("agent/run.sh", "echo more")
	two := l.draft("")
	if len(one.AgentFiles) != 64 || one.AgentFiles == two.AgentFiles || one.Plan.Digest == two.Plan.Digest {
		t.Errorf("agent files %s and %s", one.AgentFiles, two.AgentFiles)
	}
	l.submit(one, "r")
	if got := l.objects("packs/"); len(got) != 2 {
		t.Errorf("%d archives in the store", len(got))
	}
}

func TestDraftRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		extra string
		setup func(l *lab)
		want  []string
	}{
		{name: "no task is selected", extra: "select: {tasks: [\"nothing*\"]}\n", want: []string{"run.yaml", "no task is selected", "pack"}},
		{
			name: "ids that no task has", extra: "select: {tasks: [sort-number, a, nothing, \"b*\"], exclude: [sort-numbers, rot31]}\n",
			setup: func(l *lab) { l.pack("pack", "a", "b", "sort-numbers", "rot13") },
			want: []string{
				`run.yaml: select.tasks[0]: no task has the id "sort-number"; did you mean sort-numbers?`,
				`run.yaml: select.tasks[2]: no task has the id "nothing"; ids are compared whole; * stands for any text`,
				`run.yaml: select.exclude[1]: no task has the id "rot31"; did you mean rot13?`,
			},
		},
		{
			name: "oracle without a solution", want: []string{"oracle", "pack"},
			setup: func(l *lab) {
				l.write("run.yaml", strings.Replace(runFile, "{name: script, command: [run]}", "{name: oracle}", 1))
			},
		},
		{
			name: "one id in two packs", want: []string{`"b"`, "pack and in pack", "two"},
			setup: func(l *lab) {
				l.pack("two", "x", "b")
				l.write("run.yaml", strings.Replace(runFile, "packs: [pack]", "packs: [pack, two]", 1))
			},
		},
		{
			name: "bad rows are told together", want: []string{"rows.jsonl:2", "rows.jsonl:4", "already used in line 1"},
			setup: func(l *lab) { l.write("pack/rows.jsonl", "{\"id\": \"a\"}\n{oops\n{\"id\": \"b\"}\n{\"id\": \"a\"}\n") },
		},
		{name: "empty dataset", setup: func(l *lab) { l.write("pack/rows.jsonl", "") }, want: []string{"rows.jsonl", "empty"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, "a", "b")
			if test.setup != nil {
				test.setup(l)
			}
			tmp := t.TempDir()
			_, err := producer.NewDraft(t.Context(), l.load(test.extra)[0], l.options(), tmp)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want it to say %q", err, want)
				}
			}
			if left, _ := os.ReadDir(tmp); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if len(l.objects("")) > 0 {
				t.Error("something was written")
			}
		})
	}
}

func TestDraftEndsWithItsContext(t *testing.T) {
	l := newLab(t, numbered(1000)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := producer.NewDraft(ctx, l.load("")[0], l.options(), l.dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The same id is fine where it is not selected twice, and packs count their own tasks.
func TestSeveralPacks(t *testing.T) {
	l := newLab(t, "a", "b")
	l.pack("two", "c", "d", "e")
	l.write("run.yaml", strings.Replace(runFile, "packs: [pack]", "packs: [pack, two]", 1))
	d := l.draft("repeats: 2\n")
	if d.Packs[0].Tasks != 2 || d.Packs[1].Tasks != 3 || d.Plan.Trials != 10 {
		t.Errorf("packs %+v, plan %+v", d.Packs, d.Plan)
	}
	sub := l.submit(d, "r")
	rows, _ := l.planned(sub.Record)
	for i, row := range rows {
		if want := d.Packs[min(i/4, 1)].SHA256; row.Pack != want {
			t.Errorf("row %d is of pack %s, want %s", i, row.Pack, want)
		}
	}
}

// The value of a matrix reaches the packs, and makes plans of their own.
func TestMatrix(t *testing.T) {
	l := newLab(t, "a")
	l.write("run.yaml", strings.Replace(runFile, "command: [run]", "command: [run, '${MODEL}']", 1))
	runs := l.load("matrix: {MODEL: [one, two]}\n")
	if len(runs) != 2 {
		t.Fatalf("%d runs", len(runs))
	}
	digests := map[string]bool{}
	p := l.producer()
	for i, run := range runs {
		d, err := producer.NewDraft(t.Context(), run, l.options(), l.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		digests[d.Plan.Digest] = true
		sub, err := p.Submit(t.Context(), d, producer.Options{RunID: "g-" + string(rune('1'+i)), Group: "g"})
		if err != nil {
			t.Fatal(err)
		}
		if sub.Record.Group != "g" || sub.Record.Run.Agent.Command[1] != run.Matrix["MODEL"][0] {
			t.Errorf("record %+v", sub.Record)
		}
	}
	if len(digests) != 2 {
		t.Error("both runs have one plan")
	}
}

func TestSecretsStayOut(t *testing.T) {
	l := newLab(t, "a")
	l.env = map[string]string{"SOME_API_KEY": "s3cr3t-value-that-nobody-may-see"}
	l.write("run.yaml", strings.Replace(runFile, "command: [run]", "command: [run], secrets: [SOME_API_KEY]", 1))
	l.submit(l.draft(""), "r")
	for key, body := range l.objects("") {
		if strings.Contains(body, "s3cr3t") {
			t.Errorf("%s holds the secret", key)
		}
	}
	if body := l.objects("runs/r/run.yaml")["runs/r/run.yaml"]; !strings.Contains(body, "SOME_API_KEY") {
		t.Error("run.yaml does not name the secret")
	}
	for _, command := range []string{"[run, '${SOME_API_KEY}']", "[run, s3cr3t-value-that-nobody-may-see]"} {
		body := strings.Replace(runFile, "command: [run]", "command: "+command+", secrets: [SOME_API_KEY]", 1)
		if _, err := manifest.Parse("run.yaml", []byte(body), l.options()); err == nil {
			t.Errorf("%s is accepted", command)
		}
	}
}
