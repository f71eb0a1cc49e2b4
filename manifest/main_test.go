// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write puts files below a new directory.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// smallPack is a pack.yaml over rows.jsonl with the fields id and prompt.
const smallPack = `version: 1
kind: dataset
dataset: {path: rows.jsonl, id_field: id}
agent_fields: [prompt]
instruction: "say {{.prompt}}"
grade: {command: [sh, "${TIDEMILL_WORKDIR}/grade.sh"]}
`

func open(t testing.TB, dir string) *Pack {
	t.Helper()
	p, err := OpenPack(dir, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
