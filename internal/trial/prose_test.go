// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/bundle"
)

// Whatever a text holds, it comes back from a record as it was.
func TestProseComesBack(t *testing.T) {
	text := rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune("\n\t\r ab#:-|>'\"%&*!?{}[]~\\\u0085\u2028\u2029\ufeff\u0000\u007f")), rapid.Rune()))
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "text")
		want := map[string]any{"a": s, "b": []any{s, map[string]any{"c": s}}}
		body, err := bundle.EncodeYAML(struct {
			Top  prose   `yaml:"top"`
			List []prose `yaml:"list,flow"`
			Any  any     `yaml:"any"`
		}{prose(s), []prose{prose(s)}, proseIn(want)})
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		var back struct {
			Top  string
			List []string
			Any  map[string]any
		}
		if err := yaml.Unmarshal(body, &back); err != nil {
			t.Fatalf("%q: %v\n%s", s, err, body)
		}
		if back.Top != s || back.List[0] != s {
			t.Fatalf("%q came back as %q and %q from\n%s", s, back.Top, back.List[0], body)
		}
		if diff := cmp.Diff(want, back.Any); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
