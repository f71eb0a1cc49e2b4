// SPDX-License-Identifier: Apache-2.0

package runtime_test

import (
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

func TestLinkProblem(t *testing.T) {
	for _, c := range []struct {
		name, target string
		ok           bool
	}{
		{"l", "f", true},
		{"l", "./a//b", true},
		{"a/l", "../f", true},
		{"a/b/l", "../../f", true},
		{"l", "..", false},
		{"l", "../f", false},
		{"a/l", "../../f", false},
		{"a/l", "b/..", false},
		{"a/l", "b/../../..", false},
		{"l", "/f", false},
		{"l", "", false},
	} {
		if reason := runtime.LinkProblem(c.name, c.target); (reason == "") != c.ok {
			t.Errorf("%s -> %s: %q", c.name, c.target, reason)
		}
	}
}
