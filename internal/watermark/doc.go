// SPDX-License-Identifier: Apache-2.0

// Package watermark tells whether there is enough of something to begin more work: disk,
// memory. A [Mark] has two levels, so that a value about a limit doesn't make it change
// its mind with every look.
package watermark

import "fmt"

// Mark is low below one level and high again from another. It is used by one goroutine.
type Mark struct {
	// Low is the level below which there is too little; 0 or less is never.
	Low int64
	// High is the level from which there is enough again. Less than Low means Low and a
	// quarter.
	High int64

	low bool
}

// Look takes a new value and reports whether there is too little, and whether that is new.
func (m *Mark) Look(have int64) (low, changed bool) {
	was := m.low
	switch {
	case m.Low <= 0:
		m.low = false
	case have < m.Low:
		m.low = true
	case have >= m.high():
		m.low = false
	}
	return m.low, m.low != was
}

func (m *Mark) high() int64 {
	if m.High < m.Low {
		return m.Low + m.Low/4
	}
	return m.High
}

// Text says how things stand with a value, of "free disk" for example.
func (m *Mark) Text(what string, have int64) string {
	return fmt.Sprintf("%s: %s; stops below %s, goes on from %s", what, Size(have), Size(m.Low), Size(m.high()))
}

// Size is a number of bytes as people read it.
func Size(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, u := float64(n)/(1<<10), 0
	for ; f >= 1<<10 && u < len(units)-1; u++ {
		f /= 1 << 10
	}
	return fmt.Sprintf("%.1f %ciB", f, units[u])
}
