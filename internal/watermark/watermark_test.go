// SPDX-License-Identifier: Apache-2.0

package watermark

import (
	"math"
	"path/filepath"
	"testing"
)

func TestMark(t *testing.T) {
	type look struct {
		have         int64
		low, changed bool
	}
	for _, test := range []struct {
		name  string
		mark  Mark
		looks []look
	}{
		{"it stops below and goes on above", Mark{Low: 100, High: 200}, []look{
			{150, false, false}, {100, false, false}, {99, true, true}, {100, true, false}, {199, true, false}, {200, false, true}, {150, false, false},
		}},
		{"without a second level it is a quarter more", Mark{Low: 100}, []look{{99, true, true}, {124, true, false}, {125, false, true}}},
		{"off", Mark{}, []look{{0, false, false}, {-1, false, false}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i, l := range test.looks {
				if low, changed := test.mark.Look(l.have); low != l.low || changed != l.changed {
					t.Errorf("look %d at %d: %v %v, want %v %v", i, l.have, low, changed, l.low, l.changed)
				}
			}
		})
	}
}

func TestText(t *testing.T) {
	m := Mark{Low: 1 << 30}
	if got, want := m.Text("free disk", 1<<29), "free disk: 512.0 MiB; stops below 1.0 GiB, goes on from 1.2 GiB"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1 << 10: "1.0 KiB", math.MaxInt64: "8.0 EiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestDisk(t *testing.T) {
	if n, err := Disk(t.TempDir()); err != nil || n <= 0 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := Disk(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a directory that isn't there has free disk")
	}
}

func TestMemory(t *testing.T) {
	if n, err := Memory(); err != nil || n <= 0 {
		t.Errorf("%d, %v", n, err)
	}
}
