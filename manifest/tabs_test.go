// SPDX-License-Identifier: Apache-2.0

package manifest

import "testing"

// Whatever the parser makes of a tab, and wherever it stops, the line with the tab is named.
func TestTabs(t *testing.T) {
	const want = "not valid YAML: a tab stands in the indentation; tabs can't indent YAML; use spaces"
	for _, test := range []struct{ name, text, want string }{
		{"before a list", "version: 1\nname: x\npacks:\n\t- ./pack\n", "x.yaml:4: " + want},
		{"before a key", "version: 1\nname: x\nagent:\n  name: a\n\tcommand: [x]\n", "x.yaml:5: " + want},
		{"behind a space", "version: 1\nname:\tx\n\nagent:\n  name: a\n \tcommand: [x]\n", "x.yaml:6: " + want},
		{"in the first key", "version: 1\r\nagent:\r\n\tname: x\r\n", "x.yaml:3: " + want},
		{"another wrong character", "version: 1\nname: @x\n", "x.yaml:2: not valid YAML: found character that cannot start any token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(test.text), LoadOptions{})
			if err == nil || err.Error() != test.want {
				t.Errorf("said %v\nwant %s", err, test.want)
			}
		})
	}
}
