// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// What is in a store may be anybody's: no aggregate.json breaks its reader.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"aggregate.json", "nothing_committed.json"} {
		body, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"schema_version":1,"total_tasks":-1,"pass_k":[{"k":1,"pass@k":1e308,"pass^k":null}],"tasks":[{}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		agg, err := Decode(body)
		if err != nil {
			return
		}
		if err := WriteTable(io.Discard, agg, TableOptions{Color: true}); err != nil {
			t.Errorf("table of a decoded aggregate: %v", err)
		}
	})
}
