// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"testing"
)

// A pack that is named by a link is the pack that the link leads to.
func TestLinkedDirectories(t *testing.T) {
	dir := t.TempDir()
	pack := filepath.Join(dir, "real")
	if err := os.Mkdir(pack, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		packFileName: "version: 1\nkind: dataset\nname: p\ndataset: {path: rows.jsonl, id_field: id}\n" +
			"instruction: do it\ngrade: {command: [\"true\"]}\n",
		"rows.jsonl": "{\"id\":\"a\"}\n",
	} {
		if err := os.WriteFile(filepath.Join(pack, name), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	var sums []string
	for _, at := range []string{pack, link} {
		p, err := OpenPack(at, LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := p.Archive(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := Archive(t.Context(), at, nil, ArchiveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum, plain)
	}
	if sums[0] != sums[2] || sums[1] != sums[3] {
		t.Errorf("digests differ: %q", sums)
	}
}
