// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

func TestParseIndexRefuses(t *testing.T) {
	sum := strings.Repeat("0", 64)
	entry := func(path, size, sum string) string {
		return `{"path":"` + path + `","size":` + size + `,"sha256":"` + sum + `"}`
	}
	for _, c := range []struct{ name, files, want string }{
		{"outside", entry("../x", "1", sum), "path"},
		{"absolute", entry("/x", "1", sum), "path"},
		{"unescaped", entry("a b", "1", sum), "path"},
		{"itself", entry("index.json", "1", sum), "lists itself"},
		{"negative", entry("x", "-1", sum), "negative"},
		{"not a number", entry("x", `"1"`, sum), "size"},
		{"short sum", entry("x", "1", "00"), "64 hex"},
		{"upper sum", entry("x", "1", strings.Repeat("A", 64)), "64 hex"},
		{"wrong name", `{"path":"x","size":1,"sha256":"` + sum + `","name":"y"}`, "another path"},
		{"twice", entry("x", "1", sum) + "," + entry("x", "1", sum), "once"},
		{"unsorted", entry("y", "1", sum) + "," + entry("x", "1", sum), "order"},
	} {
		_, err := bundle.ParseIndex([]byte(`{"schema_version":1,"files":[` + c.files + `]}`))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	if _, err := bundle.ParseIndex([]byte(`{"schema_version":2,"files":[]}`)); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a newer index: error %v", err)
	}
	if ix, err := bundle.ParseIndex([]byte(`{"schema_version":1,"files":[` + entry("x", "1", sum) + `],"more":1}`)); err != nil || len(ix.Files) != 1 {
		t.Errorf("index %+v, error %v", ix, err)
	}
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte(`{"schema_version":1,"files":[{"path":"a/b","size":1,"sha256":"` + strings.Repeat("0", 64) + `"}]}`))
	f.Add([]byte(`{"schema_version":1,"files":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		ix, err := bundle.ParseIndex(body)
		if err != nil {
			return
		}
		for _, e := range ix.Files {
			if err := bundle.CheckKey(e.Path); err != nil {
				t.Error(err)
			}
			if got, ok := ix.Find(e.Path); !ok || got != e {
				t.Errorf("%s isn't found", e.Path)
			}
		}
		again, err := bundle.EncodeRecord(ix)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bundle.ParseIndex(again); err != nil {
			t.Errorf("what was written isn't read: %v", err)
		}
	})
}
