// SPDX-License-Identifier: Apache-2.0

package app

import "strconv"

// Count is a number with its noun: 1 task, 2 tasks.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
