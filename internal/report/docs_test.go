// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Every key that is written is in docs/aggregate.md.
func TestKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "aggregate.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Aggregate](), reflect.TypeFor[Task](), reflect.TypeFor[Missing](), reflect.TypeFor[MissingTrial](),
		reflect.TypeFor[Outcomes](), reflect.TypeFor[Attempts](), reflect.TypeFor[Epochs](), reflect.TypeFor[Ended](),
		reflect.TypeFor[Bounds](), reflect.TypeFor[PassK](), reflect.TypeFor[Captures](), reflect.TypeFor[Capture](),
		reflect.TypeFor[Slices](), reflect.TypeFor[Failures](), reflect.TypeFor[FailureSummary](), reflect.TypeFor[Failure](),
	} {
		for _, f := range reflect.VisibleFields(typ) {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if key != "" && !strings.Contains(string(page), "`"+key+"`") {
				t.Errorf("docs/aggregate.md does not describe %s of %s", key, typ.Name())
			}
		}
	}
}
