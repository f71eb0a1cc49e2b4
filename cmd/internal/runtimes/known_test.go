// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// What run files are checked against is what the runtimes are.
func TestKnownTypes(t *testing.T) {
	rts, err := New(Config{Dir: filepath.Join(t.TempDir(), "work"), StoreUUID: someStore}, Types()...)
	if err != nil {
		t.Fatal(err)
	}
	defer Close(rts)
	var names []string
	for _, kind := range app.RuntimeTypes {
		names = append(names, kind.Name)
		rt := rts[kind.Name]
		if rt == nil {
			continue // told below
		}
		if none := kind.Images == manifest.ImagesNone; none == rt.Properties().Images {
			t.Errorf("%s: a run file may not have an image: %t; the runtime has images: %t", kind.Name, none, rt.Properties().Images)
		}
		for _, key := range kind.Lacks {
			if slices.Contains(rt.Properties().Limits, key) {
				t.Errorf("%s: %s is refused in run files, and the runtime has it", kind.Name, key)
			}
		}
		if err := prepare(t, rt, "surely-unknown", "x"); err == nil {
			t.Errorf("%s: an unknown option is accepted, and refused in run files", kind.Name)
		}
		for key, words := range kind.Options {
			for _, word := range words {
				if err := prepare(t, rt, key, word); err != nil && strings.Contains(err.Error(), "options") {
					t.Errorf("%s: %s: %s is refused, and accepted in run files: %v", kind.Name, key, word, err)
				}
			}
			if words != nil && prepare(t, rt, key, "surely-unknown") == nil {
				t.Errorf("%s: %s accepts any word, and run files don't", kind.Name, key)
			}
			if unsupported, ok := errors.AsType[*runtime.UnsupportedError](prepare(t, rt, key, "x")); ok && unsupported.Feature == "options."+key {
				t.Errorf("%s: there is no option %s, and run files may have it", kind.Name, key)
			}
		}
	}
	if !slices.Equal(names, Types()) {
		t.Errorf("run files may name %v, want %v", names, Types())
	}
}

// prepare returns why a runtime won't have an option.
func prepare(t *testing.T, rt runtime.Runtime, key, value string) error {
	t.Helper()
	env, err := rt.Prepare(t.Context(), runtime.RunSpec{
		Run: "r", Store: someStore, Network: []runtime.Network{{Policy: runtime.FullInternet}}, Options: map[string]any{key: value},
	})
	if err != nil {
		return err
	}
	return env.Close(t.Context())
}
