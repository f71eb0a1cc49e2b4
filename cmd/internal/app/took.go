// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strconv"
	"strings"
	"time"
)

// Took is a duration for people, as exactly as they care to know: 0.4s, 45s, 14m2s, 2h14m,
// 3d4h. Less than none is none.
func Took(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < 10*time.Second-50*time.Millisecond:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + "s"
	case d < time.Hour-500*time.Millisecond:
		return whole(d.Round(time.Second))
	case d < 2*day-30*time.Second:
		return whole(d.Round(time.Minute))
	}
	d = d.Round(time.Hour)
	days := strconv.Itoa(int(d/day)) + "d"
	if rest := d % day; rest > 0 {
		return days + whole(rest)
	}
	return days
}

// whole leaves out what is 0 at the end.
func whole(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
