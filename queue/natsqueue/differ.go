// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// difference is one key in which a stream is not what the queue needs.
type difference struct {
	key        string // as the server's tools call it
	have, want any
	fix        func(*jetstream.StreamConfig) // nil where the server allows no change
}

func (d difference) String() string { return fmt.Sprintf("%s is %v, want %v", d.key, d.have, d.want) }

// differences compares a stream that is there with the one that would be made. What
// an operator may choose is no difference: placement, compression, a description, more
// metadata, and the limits of what is only kept for people. Replicas and the
// deduplication window count only if this process was told some.
func (c Config) differences(have, want jetstream.StreamConfig) (list []difference) {
	differ := func(key string, same bool, h, w any, fix func(*jetstream.StreamConfig)) {
		if !same {
			list = append(list, difference{key, h, w, fix})
		}
	}
	// What the server can't change afterwards.
	differ("retention", have.Retention == want.Retention, have.Retention, want.Retention, nil)
	differ("storage", have.Storage == want.Storage, have.Storage, want.Storage, nil)
	differ("subjects", sameSubjects(have, want), have.Subjects, want.Subjects, nil)
	differ("sealed", have.Sealed == want.Sealed, have.Sealed, want.Sealed, nil)
	differ("mirror", have.Mirror == nil && len(have.Sources) == 0, "a copy of another stream", "none", nil)
	differ("deny_delete", want.DenyDelete || !have.DenyDelete, have.DenyDelete, want.DenyDelete, nil)
	differ("deny_purge", have.DenyPurge == want.DenyPurge, have.DenyPurge, want.DenyPurge, nil)
	// What it can.
	flag := func(key string, have, want bool, fix func(*jetstream.StreamConfig)) {
		differ(key, have || !want, have, want, fix)
	}
	flag("allow_direct", have.AllowDirect, want.AllowDirect, func(c *jetstream.StreamConfig) { c.AllowDirect = true })
	flag("allow_rollup_hdrs", have.AllowRollup, want.AllowRollup, func(c *jetstream.StreamConfig) { c.AllowRollup = true })
	flag("allow_msg_ttl", have.AllowMsgTTL, want.AllowMsgTTL, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true })
	flag("allow_atomic", have.AllowAtomicPublish, want.AllowAtomicPublish, func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = true })
	flag("allow_msg_schedules", have.AllowMsgSchedules, want.AllowMsgSchedules, func(c *jetstream.StreamConfig) { c.AllowMsgSchedules = true })
	if !forPeople(want.Name) {
		// A limit here loses jobs, runs or leases without a word.
		differ("discard", have.Discard == want.Discard, have.Discard, want.Discard, func(c *jetstream.StreamConfig) { c.Discard = want.Discard })
		differ("max_msgs", have.MaxMsgs == want.MaxMsgs, have.MaxMsgs, want.MaxMsgs, func(c *jetstream.StreamConfig) { c.MaxMsgs = want.MaxMsgs })
		differ("max_bytes", have.MaxBytes == want.MaxBytes, have.MaxBytes, want.MaxBytes, func(c *jetstream.StreamConfig) { c.MaxBytes = want.MaxBytes })
		differ("max_age", have.MaxAge == want.MaxAge, have.MaxAge, want.MaxAge, func(c *jetstream.StreamConfig) { c.MaxAge = want.MaxAge })
		differ("max_msgs_per_subject", have.MaxMsgsPerSubject == want.MaxMsgsPerSubject, have.MaxMsgsPerSubject, want.MaxMsgsPerSubject,
			func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = want.MaxMsgsPerSubject })
		differ("max_msg_size", have.MaxMsgSize <= 0, have.MaxMsgSize, -1, func(c *jetstream.StreamConfig) { c.MaxMsgSize = -1 })
	}
	if c.Replicas != 0 {
		differ("num_replicas", have.Replicas == want.Replicas, have.Replicas, want.Replicas, func(c *jetstream.StreamConfig) { c.Replicas = want.Replicas })
	}
	if c.DedupeWindow != 0 && want.Name == trialsStream {
		differ("duplicate_window", have.Duplicates == want.Duplicates, have.Duplicates, want.Duplicates,
			func(c *jetstream.StreamConfig) { c.Duplicates = want.Duplicates })
	}
	return list
}

// forPeople reports whether a stream holds what only people and their tools read.
func forPeople(stream string) bool {
	return stream == deadStream || stream == strandedStream
}

// sameSubjects compares the subjects. Those of the leases have the stream's birth in
// them, which is another each time.
func sameSubjects(have, want jetstream.StreamConfig) bool {
	if want.Name == leasesStream {
		return birthOf(have) != ""
	}
	h, w := slices.Clone(have.Subjects), slices.Clone(want.Subjects)
	slices.Sort(h)
	slices.Sort(w)
	return slices.Equal(h, w)
}

// fixed returns the configuration with all differences removed, or those that can't be.
func fixed(have jetstream.StreamConfig, list []difference) (next jetstream.StreamConfig, stuck []string) {
	next = have
	for _, d := range list {
		if d.fix == nil {
			stuck = append(stuck, d.String())
			continue
		}
		d.fix(&next)
	}
	return next, stuck
}

func listed(what []string) string { return strings.Join(what, "; ") }
