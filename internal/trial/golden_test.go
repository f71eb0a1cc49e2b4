// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// normal makes what differs between two runs of the same attempt the same.
var normal = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?m)^((?:[a-z_]+_duration|latency_total)_s): \d+\.\d{1,3}$`), "$1: S.SSS"},
	{regexp.MustCompile(`(?m)^((?:start|end)_ts): "?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"?$`), "$1: TIME"},
	{regexp.MustCompile(`(?m)^([oe!][ +]) \d+\.\d{3} `), "$1 S.SSS "},
	{regexp.MustCompile(`(?m)^(  os|  arch): (` + goruntime.GOOS + `|` + goruntime.GOARCH + `)$`), "$1: HERE"},
}

// golden compares the whole bundle with testdata/bundles/<name>.txt.
func (r result) golden(t *testing.T, name string) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "ending: %s\n", r.Ending)
	for _, file := range slices.Sorted(maps.Keys(r.files)) {
		body := r.files[file]
		for _, n := range normal {
			body = n.what.ReplaceAllString(body, n.with)
		}
		fmt.Fprintf(&b, "-- %s --\n%s", file, body)
		if body != "" && !strings.HasSuffix(body, "\n") {
			b.WriteString("(no newline)\n")
		}
	}
	path := filepath.Join("testdata", "bundles", strings.ReplaceAll(name, " ", "-")+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
