// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

const movablePack = `version: 1
kind: dataset
dataset: {path: "${DATA}", id_field: id}
agent_fields: [prompt]
instruction: "${WHO} says {{.prompt}} for $$5, $HOME"
env: {PATTERN: "${ODD}"}
grade: {command: [sh, "${TIDEMILL_TESTS_DIR}/grade.sh"]}
metadata: {who: "${WHO}", number: 1.0}
`

// odd is a value that means something else when it is read again.
const odd = "${WHO} $$ ${TIDEMILL_X} \"yes\": #\n  \ttwo\n"

func openMovable(t *testing.T, dir, data string) *Pack {
	t.Helper()
	p, err := OpenPack(dir, LoadOptions{Vars: map[string]string{"DATA": data, "WHO": "she", "ODD": odd}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Wherever the dataset was and however it was compressed, the archive is the same; and
// unpacked it has the same tasks, without any variable.
func TestPackArchiveMovesDataset(t *testing.T) {
	elsewhere := write(t, map[string]string{"one.jsonl": ab, "two.bin": zip(ab)})
	dir := write(t, map[string]string{"pack.yaml": movablePack, "tests/grade.sh": "exit 1"})
	inside := write(t, map[string]string{"pack.yaml": movablePack, "tests/grade.sh": "exit 1", "rows.gz": zip(ab)})
	var first bytes.Buffer
	sum := ""
	for _, p := range []*Pack{
		openMovable(t, dir, filepath.Join(elsewhere, "one.jsonl")),
		openMovable(t, dir, filepath.Join(elsewhere, "two.bin")),
		openMovable(t, inside, "rows.gz"),
	} {
		var b bytes.Buffer
		got, err := p.Archive(t.Context(), &b)
		if err != nil {
			t.Fatal(err)
		}
		if sum == "" {
			sum, first = got, b
		}
		if got != sum {
			t.Errorf("%s: digest %s, want %s", p.content.(*datasetPack).data.path, got, sum)
		}
	}

	to := filepath.Join(t.TempDir(), "pack")
	if err := Unpack(t.Context(), &first, sum, to); err != nil {
		t.Fatal(err)
	}
	unpacked := open(t, to)
	data := unpacked.content.(*datasetPack).data
	if data.gzip || data.inside != datasetFile {
		t.Errorf("the dataset is at %q, gzip: %t", data.inside, data.gzip)
	}
	if again, err := unpacked.Archive(t.Context(), nil); err != nil || again != sum {
		t.Errorf("archived again: %s, %v; want %s", again, err, sum)
	}
	original := openMovable(t, inside, "rows.gz")
	for ref, err := range original.Tasks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		want, err := original.Task(ref)
		if err != nil {
			t.Fatal(err)
		}
		got, err := unpacked.Task(ref)
		if err != nil {
			t.Fatal(err)
		}
		want.Steps[0].Grade.Files = filepath.Join(to, "tests")
		want.Metadata["number"] = int64(1) // YAML writes 1.0 as 1
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("task %s (-original +unpacked):\n%s", ref.ID, diff)
		}
		if want := "she says " + want.Steps[0].Instruction[9:10] + " for $5, $HOME"; got.Steps[0].Instruction != want || got.Env["PATTERN"] != odd {
			t.Errorf("instruction %q, want %q; PATTERN %q", got.Steps[0].Instruction, want, got.Env["PATTERN"])
		}
	}
}

// A pack that needs no change is archived as it is.
func TestPackArchiveVerbatim(t *testing.T) {
	dir := write(t, map[string]string{"pack.yaml": smallPack + "# a comment\n", "rows.jsonl": ab})
	want, _ := archive(t, dir)
	if got, err := open(t, dir).Archive(t.Context(), nil); err != nil || got != want {
		t.Errorf("digest = %s, %v; want %s", got, err, want)
	}
}

func TestPackArchiveReservedName(t *testing.T) {
	dir := write(t, map[string]string{"pack.yaml": smallPack, "rows.jsonl": zip(ab), ".dataset/x": ""})
	if _, err := open(t, dir).Archive(t.Context(), nil); err == nil {
		t.Error("the pack's own .dataset was taken")
	}
}

// A link to a dataset elsewhere is followed, not archived.
func TestPackArchiveLinkedDataset(t *testing.T) {
	elsewhere := write(t, map[string]string{"rows": ab})
	dir := write(t, map[string]string{"pack.yaml": smallPack})
	if err := os.Symlink(filepath.Join(elsewhere, "rows"), filepath.Join(dir, "rows.jsonl")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	sum, err := open(t, dir).Archive(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "pack")
	if err := Unpack(t.Context(), &b, sum, to); err != nil {
		t.Fatal(err)
	}
	if ids, errs := outcome(t, open(t, to)); len(ids) != 2 || errs != nil {
		t.Errorf("tasks %q, errors %q", ids, errs)
	}
}

// Any text in a pack file survives being written with its variables filled in.
func TestMarshalPack(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching("[ \t\n#:$'\"{}a-c-]{0,12}"))
	rapid.Check(t, func(t *rapid.T) {
		spec := packFile{Version: 1, Kind: kindDataset, Instruction: text.Draw(t, "instruction")}
		spec.Grade.Command = []string{text.Draw(t, "argument")}
		spec.Env = map[string]string{"A": text.Draw(t, "value")}
		data, err := marshalPack(spec)
		if err != nil {
			t.Skip(err) // refused is fine, changed is not
		}
		var raw packFile
		if err := yaml.Unmarshal(data, &raw); err != nil {
			t.Fatal(err)
		}
		if raw.Instruction != escape(spec.Instruction) || raw.Grade.Command[0] != escape(spec.Grade.Command[0]) || raw.Env["A"] != escape(spec.Env["A"]) {
			t.Fatalf("%+v became\n%s", spec, data)
		}
	})
}
