// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"math"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"
)

// Seconds is a duration as records show it: seconds with at most three decimals.
type Seconds float64

// NewSeconds rounds a duration to milliseconds, half away from zero.
func NewSeconds(d time.Duration) Seconds {
	return Seconds(float64(d.Round(time.Millisecond)/time.Millisecond) / 1000)
}

// Millis returns whole milliseconds.
func (s Seconds) Millis() int64 {
	return int64(math.Round(float64(s) * 1000))
}

// MarshalYAML keeps a decimal point and never writes an exponent, so that readers see
// a float in every case.
func (s Seconds) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: plainFloat(float64(s))}, nil
}

// String returns the shortest decimal.
func (s Seconds) String() string { return strconv.FormatFloat(float64(s), 'f', -1, 64) }
