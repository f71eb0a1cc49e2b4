// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"
)

// Durations are told as exactly as somebody cares to know.
func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:             "0s",
		0:                        "0s",
		40 * time.Millisecond:    "0s",
		412 * time.Millisecond:   "0.4s",
		2 * time.Second:          "2s",
		9949 * time.Millisecond:  "9.9s",
		9951 * time.Millisecond:  "10s",
		45404569021:              "45s",
		59600 * time.Millisecond: "1m",
		842 * time.Second:        "14m2s",
		10 * time.Minute:         "10m",
		time.Hour - time.Second:  "59m59s",
		time.Hour - 1:            "1h",
		8053 * time.Second:       "2h14m",
		2 * time.Hour:            "2h",
		47 * time.Hour:           "47h",
		48*time.Hour - 1:         "2d",
		76 * time.Hour:           "3d4h",
		240 * time.Hour:          "10d",
	} {
		if got := Took(d); got != want {
			t.Errorf("Took(%d): %s, want %s", d, got, want)
		}
	}
}
