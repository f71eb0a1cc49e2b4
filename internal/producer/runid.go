// SPDX-License-Identifier: Apache-2.0

package producer

import "time"

// maxRunID is the longest run id, in characters.
const maxRunID = 63

// NewRunID returns the default id of a run: <name>-<UTC time>, in at most 63 characters.
func NewRunID(name string, at time.Time) string {
	end := stamp(at)
	return name[:min(len(name), maxRunID-len(end))] + end
}

func stamp(at time.Time) string { return "-" + at.UTC().Format("20060102-150405") }

// NewGroupID returns the id that ties runs together. It leaves room for "-<n>", which
// makes it the id of one of them.
func NewGroupID(name string, at time.Time) string {
	const room = maxRunID - len("-20060102-150405") - len("-1000")
	return NewRunID(name[:min(len(name), room)], at)
}
