// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"strconv"
	"time"
)

// maxRunID is the longest run id, in characters.
const maxRunID = 63

// NewRunID returns the n-th default id of a run, counted from 1: <name>-<UTC time>, then
// <name>-<UTC time>-2 and so on for runs that begin within a second. It has at most 63
// characters.
func NewRunID(name string, at time.Time, n int) string { return newID(name, at, n, maxRunID) }

// NewGroupID returns the n-th id that ties runs together. It leaves room for "-<n>",
// which makes it the id of one of them.
func NewGroupID(name string, at time.Time, n int) string {
	return newID(name, at, n, maxRunID-len("-1000"))
}

func newID(name string, at time.Time, n, room int) string {
	end := "-" + at.UTC().Format("20060102-150405")
	if n > 1 {
		end += "-" + strconv.Itoa(n)
	}
	return name[:min(len(name), room-len(end))] + end
}
