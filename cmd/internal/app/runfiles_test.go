// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill/manifest"
)

func TestCheckRunID(t *testing.T) {
	one := []RunFile{{Runs: make([]*manifest.Run, 1)}}
	matrix := []RunFile{{Runs: make([]*manifest.Run, 12)}}
	two := append(one, one...)
	long := strings.Repeat("a", 63)
	for _, c := range []struct {
		id    string
		files []RunFile
		want  string
	}{
		{"", two, ""},
		{"nightly-7", one, ""},
		{"7", one, ""},
		{long, one, ""},
		{long + "a", one, "64 characters, want at most 63"},
		{long[:60], matrix, ""}, // room for -12
		{long[:61], matrix, "want at most 60"},
		{"Nightly", one, "small letters"},
		{"a_b", one, "small letters"},
		{"a/b", one, "small letters"},
		{"..", one, "small letters"},
		{"-a", one, "no dash at the beginning"},
		{"nightly", two, "there are 2 run files"},
	} {
		err := CheckRunID(c.id, c.files)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("CheckRunID(%q) of %d files: %v; want %q", c.id, len(c.files), err, c.want)
		}
	}
}
