// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

func TestFiles(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{"t1.1", "t1.2", "t2.1.panic", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "logs"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	precious := filepath.Join(outside, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	f := Files{
		Kind: "bundle", Dir: dir, Store: ours,
		Match: func(name string) bool { return name != "other" },
		InUse: func(name string) bool { return name == "t1.2" },
	}
	list, err := f.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range list {
		if r.Live {
			got = append(got, r.Name+" lives")
		} else {
			got = append(got, r.Name)
		}
		if r.Created.IsZero() || r.Labels.Store != ours {
			t.Errorf("%s: created %v, of store %s", r.Name, r.Created, r.Labels.Store)
		}
		if r.Name == "t1.2" && (r.Labels.Trial != "t1" || r.Labels.Attempt != 2) {
			t.Errorf("%s is of trial %q, attempt %d", r.Name, r.Labels.Trial, r.Labels.Attempt)
		}
		if err := f.Destroy(t.Context(), r.Handle); err != nil {
			t.Error(err)
		}
		if err := f.Destroy(t.Context(), r.Handle); err != nil {
			t.Errorf("again: %v", err)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"link", "t1.1", "t1.2 lives", "t2.1.panic"}, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"other", "t1.2"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("behind the link: %v", err)
	}
	for _, h := range []runtime.Handle{
		{Kind: "bundle", ID: precious},
		{Kind: "bundle", ID: filepath.Join(dir, "..")},
		{Kind: "bundle", ID: dir},
		{Kind: "container", ID: filepath.Join(dir, "other")},
	} {
		if err := f.Destroy(t.Context(), h); err == nil {
			t.Errorf("%s %s was accepted", h.Kind, h.ID)
		}
	}
	none, err := Files{Kind: "bundle", Dir: filepath.Join(dir, "nowhere"), Store: ours}.List(t.Context())
	if err != nil || len(none) > 0 {
		t.Errorf("of a directory that isn't there: %v, %v", none, err)
	}
}
