// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
)

// What is a duration but for its length is told so.
func TestParseDurationTooLong(t *testing.T) {
	for _, s := range []string{"9999999h", "1h99999999999999999999s"} {
		if _, err := ParseDuration(s); err == nil || !strings.Contains(err.Error(), "is too long; write 2500000h or less") {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []string{"9999999", "-9999999h", "99 h", "h", ""} {
		if _, err := ParseDuration(s); err == nil || !strings.Contains(err.Error(), "is not a duration") {
			t.Errorf("%q: %v", s, err)
		}
	}
	if _, err := ParseDuration("2500000h"); err != nil {
		t.Error(err)
	}
}
