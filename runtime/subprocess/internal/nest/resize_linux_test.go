// SPDX-License-Identifier: Apache-2.0

package nest

import "testing"

// A disk that is full has room again when it is made larger, and less when it is made
// smaller, but never less than is in use.
func TestResizeDisk(t *testing.T) {
	b := open(t, startWarden(t), func(s *Spec) { s.Disk = 1 << 20 })
	fill := func(name string) Status {
		return b.run("head -c 9000000 /dev/zero >" + name + " && exit 0; exit 4").status
	}
	size := func() string { return b.sh("df -k . | tail -n 1 | awk '{ print $2 }'") }
	if st := fill("first"); !st.Full {
		t.Fatalf("9 MB on a disk of 1: %+v", st)
	}
	if err := b.Resize(t.Context(), 3<<20, 0); err != nil {
		t.Fatal(err)
	}
	b.sh("head -c 1500000 /dev/zero >second; rm second")
	if st := fill("third"); !st.Full || size() != "3072" {
		t.Errorf("9 MB on a disk of 3: %+v, size %s KiB", st, size())
	}
	if err := b.Resize(t.Context(), 2<<20, 0); err != nil || size() != "3072" {
		t.Errorf("made smaller than what is in it: %v, size %s KiB", err, size())
	}
	b.sh("rm third")
	if err := b.Resize(t.Context(), 2<<20, 0); err != nil || size() != "2048" {
		t.Errorf("made smaller: %v, size %s KiB", err, size())
	}
}

func TestResizeFileCount(t *testing.T) {
	b := open(t, startWarden(t), func(s *Spec) { s.Disk = 1 << 20 })
	b.run("i=0; while : >f$i; do i=$((i+1)); done")
	if err := b.Resize(t.Context(), 32<<20, 0); err != nil {
		t.Fatal(err)
	}
	b.sh("echo fits >one-more")
}

func TestResizeMemory(t *testing.T) {
	warden := startWarden(t)
	needs(t, warden, "memory")
	b := open(t, warden, func(s *Spec) { s.Memory = 32 << 20 })
	const hog = `x=$(head -c 60000000 /dev/zero | tr '\0' x); echo ${#x}`
	for _, step := range []struct {
		memory int64
		fits   bool
	}{{0, false}, {400 << 20, true}, {32 << 20, false}} {
		if err := b.Resize(t.Context(), 0, step.memory); err != nil {
			t.Fatal(err)
		}
		if r := b.run(hog); r.status.OOM == step.fits {
			t.Errorf("60 MB with memory of %d bytes: %+v; want that it fits: %t", step.memory, r, step.fits)
		}
	}
}
