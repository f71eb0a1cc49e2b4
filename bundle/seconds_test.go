// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

func TestSeconds(t *testing.T) {
	for _, c := range []struct {
		d          time.Duration
		millis     int64
		text, yaml string
	}{
		{0, 0, "0", "0.0\n"},
		{3 * time.Second, 3000, "3", "3.0\n"},
		{1499 * time.Microsecond, 1, "0.001", "0.001\n"},
		{1500 * time.Microsecond, 2, "0.002", "0.002\n"},
		{499 * time.Microsecond, 0, "0", "0.0\n"},
		{1005 * time.Millisecond, 1005, "1.005", "1.005\n"},
		{300 * time.Hour, 1_080_000_000, "1080000", "1080000.0\n"},
	} {
		s := bundle.NewSeconds(c.d)
		body, err := bundle.EncodeYAML(s)
		if err != nil {
			t.Fatal(err)
		}
		if s.Millis() != c.millis || s.String() != c.text || string(body) != c.yaml {
			t.Errorf("%v is %d ms, %q, YAML %q; want %d, %q, %q", c.d, s.Millis(), s, body, c.millis, c.text, c.yaml)
		}
		js, err := json.Marshal(s)
		if err != nil || string(js) != c.text {
			t.Errorf("%v is JSON %s, error %v; want %s", c.d, js, err, c.text)
		}
	}
}
