// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemill/tidemill/bundle"
	"pgregory.net/rapid"
)

func TestKeys(t *testing.T) {
	k := bundle.Keys{Run: "night"}
	got := []string{
		bundle.PackKey("abc"), k.RunFile(), k.PlanPart(7), k.Claim(trial, 2), k.AttemptEnd(trial, 2),
		k.Commit(trial, 3), k.AttemptFiles("HumanEval/0", 4, 2), k.Result("HumanEval/0", 4), k.ControlRecord(5), k.Report("aggregate.json"),
	}
	want := []string{
		"packs/abc.tar.zst",
		"runs/night/run.yaml",
		"runs/night/plan/000007.jsonl.zst",
		"runs/night/attempts/" + trial + "/2.json",
		"runs/night/attempts/" + trial + "/2.end.json",
		"runs/night/commits/00/" + trial + ".3.json",
		"runs/night/trials/HumanEval~2F0/4/2/",
		"runs/night/trials/HumanEval~2F0/4/result.json",
		"runs/night/control/00000005.json",
		"runs/night/aggregate.json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for _, key := range got {
		if err := bundle.CheckKey(strings.TrimSuffix(key, "/")); err != nil {
			t.Error(err)
		}
	}
	if id, epoch, ok := bundle.ParseCommitKey(k.Commit(trial, 3)); id != trial || epoch != 3 || !ok {
		t.Errorf("parsed %s %d %v", id, epoch, ok)
	}
	for _, key := range []string{"", "x", "x.json", "x.0.json", "x.-1.json", "x.y.json", "x.1.2.json", "x.1.jsonl"} {
		if id, epoch, ok := bundle.ParseCommitKey(key); ok {
			t.Errorf("%q was parsed as epoch %d of %q", key, epoch, id)
		}
	}
}

func TestEscapeSegment(t *testing.T) {
	for in, want := range map[string]string{
		"plain-1_2.3": "plain-1_2.3",
		"HumanEval/0": "HumanEval~2F0",
		"":            "~",
		"~":           "~7E",
		".":           "~2E",
		"..":          "~2E.",
		".hidden":     "~2Ehidden",
		"a b":         "a~20b",
		"ä":           "~C3~A4",
		"\x00\xff":    "~00~FF",
	} {
		if got := bundle.EscapeSegment(in); got != want {
			t.Errorf("%q is escaped as %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{"", "a/b", "a b", "~2", "~2f", "~41", "~~", ".", "a~", "~ZZ", "ä", "~+1", "a~2E"} {
		if got, err := bundle.UnescapeSegment(in); err == nil {
			t.Errorf("%q was unescaped to %q, want an error", in, got)
		}
	}
}

func TestEscapingIsReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "text"))
		seg := bundle.EscapeSegment(in)
		if err := bundle.CheckKey("x/" + seg); err != nil {
			t.Fatal(err)
		}
		out, err := bundle.UnescapeSegment(seg)
		if err != nil || out != in {
			t.Fatalf("%q became %q became %q, error %v", in, seg, out, err)
		}
	})
}

func FuzzUnescapeSegment(f *testing.F) {
	for _, s := range []string{"", "~", "HumanEval~2F0", "~2", "~2E."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, seg string) {
		if text, err := bundle.UnescapeSegment(seg); err == nil && bundle.EscapeSegment(text) != seg {
			t.Errorf("%q was unescaped to %q, which is escaped as %q", seg, text, bundle.EscapeSegment(text))
		}
	})
}

func TestEscapeName(t *testing.T) {
	got, err := bundle.EscapeName("artifacts/.cache/mein Bild.png")
	if want := "artifacts/~2Ecache/mein~20Bild.png"; got != want || err != nil {
		t.Errorf("got %q, error %v; want %q", got, err, want)
	}
	if back, err := bundle.UnescapeName(got); back != "artifacts/.cache/mein Bild.png" || err != nil {
		t.Errorf("and back: %q, error %v", back, err)
	}
	for _, name := range []string{"", "/etc/passwd", "a//b", "a/", "../a", "a/../b", "./a", ".", ".."} {
		if got, err := bundle.EscapeName(name); !errors.Is(err, bundle.ErrInvalidKey) {
			t.Errorf("%.20q became %.20q, error %v; want %v", name, got, err, bundle.ErrInvalidKey)
		}
	}
}

// TestLocalPath: different keys are different files, and each name fits a directory.
func TestLocalPath(t *testing.T) {
	segment := rapid.OneOf(
		rapid.StringMatching(`[a-b]{1,3}`),
		rapid.Custom(func(t *rapid.T) string { return strings.Repeat("s", rapid.IntRange(198, 605).Draw(t, "length")) }),
	)
	key := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(segment, 1, 3).Draw(t, "segments"), "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := key.Draw(t, "a"), key.Draw(t, "b")
		if (a == b) != (bundle.LocalPath(a) == bundle.LocalPath(b)) {
			t.Fatalf("%q and %q are %q and %q", a, b, bundle.LocalPath(a), bundle.LocalPath(b))
		}
		local := bundle.LocalPath(a)
		if strings.ReplaceAll(local, "+/", "") != a || path.Clean(local) != local {
			t.Fatalf("%q is spelled %q", a, local)
		}
		for name := range strings.SplitSeq(local, "/") {
			if len(name) > 255 {
				t.Fatalf("%q has a name of %d bytes", a, len(name))
			}
		}
	})
}
