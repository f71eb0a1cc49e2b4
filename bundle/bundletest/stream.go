// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"crypto/sha256"
	"hash"
	"io"
	"math/rand/v2"
	goruntime "runtime"
	"testing"
)

// maxStreamAlloc is how much may be allocated in all while a large object passes
// through: some buffers and parts of an upload, not the object.
const maxStreamAlloc = 40 << 20

// testPutStream moves an object that is larger than what the store may allocate.
func testPutStream(t *testing.T, h Harness) {
	s := h.open(t)
	src := &noise{left: h.StreamBytes, rng: rand.NewChaCha8([32]byte{1}), sum: sha256.New()}
	allocated := allocations(func() {
		if err := s.Put(t.Context(), "big", src, h.StreamBytes); err != nil {
			t.Fatal(err)
		}
	})
	limit := min(maxStreamAlloc, uint64(h.StreamBytes))
	if !h.InMemory && allocated > limit {
		t.Errorf("put allocated %d bytes for an object of %d", allocated, h.StreamBytes)
	}

	r, info, err := s.Get(t.Context(), "big")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if info.Size != h.StreamBytes {
		t.Errorf("size %d, want %d", info.Size, h.StreamBytes)
	}
	sum := sha256.New()
	allocated = allocations(func() {
		if _, err := io.Copy(sum, r); err != nil {
			t.Fatal(err)
		}
	})
	if !h.InMemory && allocated > limit {
		t.Errorf("get allocated %d bytes for an object of %d", allocated, h.StreamBytes)
	}
	if string(sum.Sum(nil)) != string(src.sum.Sum(nil)) {
		t.Error("other bytes came back")
	}
}

func allocations(run func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	run()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// noise is a reader of random bytes that can't seek and knows its hash afterwards.
type noise struct {
	left int64
	rng  *rand.ChaCha8
	sum  hash.Hash
}

func (n *noise) Read(p []byte) (int, error) {
	if n.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), n.left)]
	_, _ = n.rng.Read(p) // never fails
	n.sum.Write(p)
	n.left -= int64(len(p))
	return len(p), nil
}
