// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

func testKeysAccepted(t *testing.T, h Harness) {
	s := h.open(t)
	long := strings.Repeat("s", 600)
	keys := []string{
		"a",
		"store.json",
		"A-Z/a_z/0.9/~2E~2E",
		"trials/HumanEval~2F0/0/1/index.json",
		"deep/" + strings.Repeat("d/", 40) + "end",
		"long/" + long,
		"long/" + long + "t/" + long[:200],
		"long/" + long[:200] + "/x",
		"long/" + long[:200] + "x",
		strings.Repeat("k", 900),
		bundle.Keys{Run: "r"}.Result("../../etc/passwd", 0),
		"case/x", "case/X",
	}
	for _, key := range keys {
		mustCreate(t, s, key, key)
	}
	for _, key := range keys {
		wantBody(t, s, key, key)
	}
	wantKeys(t, s, "", keys...)
	wantKeys(t, s, "long/"+long[:200], keys[5], keys[6], keys[7], keys[8])
	wantKeys(t, s, "long/"+long[:201], keys[5], keys[6])
	wantKeys(t, s, "long/"+long+"t/", keys[6])
	for _, key := range keys {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	wantKeys(t, s, "")
}

var hostileKeys = []string{
	"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b", ".hidden", "a/.hidden",
	"a b", "a\x00b", "a\nb", "a\\b", "a:b", "a*b", "a?b", "a%2Fb", "a+b", "ä", "\xff",
	strings.Repeat("k", 901), strings.Repeat("k/", 450) + "k",
}

func testKeysRefused(t *testing.T, h Harness) {
	s := h.open(t)
	ctx := t.Context()
	for _, key := range hostileKeys {
		_, err := s.Create(ctx, key, []byte("x"))
		wantErr(t, err, bundle.ErrInvalidKey, "create")
		_, err = s.Swap(ctx, key, "v", []byte("x"))
		wantErr(t, err, bundle.ErrInvalidKey, "swap")
		wantErr(t, s.Put(ctx, key, strings.NewReader("x"), 1), bundle.ErrInvalidKey, "put")
		_, _, err = s.Get(ctx, key)
		wantErr(t, err, bundle.ErrInvalidKey, "get")
		_, err = s.GetRange(ctx, key, 0, 1)
		wantErr(t, err, bundle.ErrInvalidKey, "get range")
		wantErr(t, s.Delete(ctx, key), bundle.ErrInvalidKey, "delete")
		if t.Failed() {
			t.Fatalf("the key was %q", key)
		}
	}
	wantKeys(t, s, "")
}

func testPrefixesRefused(t *testing.T, h Harness) {
	s := h.open(t)
	mustCreate(t, s, "a/b", "x")
	for _, prefix := range []string{"/", "../", "a/../", "a//", ".", "a/.", "a b", "a/\x00"} {
		n := 0
		for info, err := range s.List(t.Context(), prefix) {
			n++
			wantErr(t, err, bundle.ErrInvalidKey, "list "+prefix)
			if info.Key != "" {
				t.Errorf("list %q yields %q", prefix, info.Key)
			}
		}
		if n != 1 {
			t.Errorf("list %q yields %d times, want one error", prefix, n)
		}
	}
}
