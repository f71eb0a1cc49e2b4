// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"cmp"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// storeKey is the metadata of each stream and consumer that names the store it
// serves.
const storeKey = "tidemill-store"

const (
	// dedupeWindow is what a new stream gets unless [Config.DedupeWindow] says more.
	dedupeWindow = 2 * time.Minute
	// markerTTL is how long the runs bucket tells watchers of a closed run.
	markerTTL = 24 * time.Hour
	// strandedAge is how long the server's advisories wait for somebody who acts.
	strandedAge = 30 * 24 * time.Hour
)

// streams are what the queue needs on the server.
func (q *Queue) streams() []jetstream.StreamConfig {
	streams := []jetstream.StreamConfig{
		{
			Name:      trialsStream,
			Subjects:  []string{"tidemill." + waitingSpace + ".>", "tidemill." + delayedSpace + ".>"},
			Retention: jetstream.WorkQueuePolicy,
			// No limits: with them the oldest jobs would vanish without a word, and
			// schedules forbid to refuse new ones instead.
			Discard:            jetstream.DiscardOld,
			Duplicates:         cmp.Or(q.cfg.DedupeWindow, dedupeWindow),
			AllowDirect:        true,
			AllowMsgSchedules:  true,
			AllowAtomicPublish: true,
		},
		{
			Name:        deadStream,
			Subjects:    []string{"tidemill.dead.>"},
			AllowDirect: true,
		},
		{
			Name:        strandedStream,
			Subjects:    []string{maxDeliveries + ">"},
			MaxAge:      strandedAge,
			AllowDirect: true,
		},
		bucket(runsBucket, func(c *jetstream.StreamConfig) {
			c.AllowDirect = true
			c.AllowMsgTTL = true
			c.SubjectDeleteMarkerTTL = markerTTL
		}),
		bucket(leasesBucket, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }),
		bucket(startsBucket, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }),
		rosterBucket(),
	}
	for i := range streams {
		c := &streams[i]
		c.FirstSeq = q.firstSeq()
		c.Replicas = max(1, q.cfg.Replicas)
		c.Metadata = map[string]string{storeKey: q.cfg.Store}
		c.MaxMsgs, c.MaxConsumers = cmp.Or(c.MaxMsgs, -1), -1
		c.MaxBytes = cmp.Or(c.MaxBytes, -1)
		c.MaxMsgsPerSubject = cmp.Or(c.MaxMsgsPerSubject, -1)
		if c.Name == leasesStream {
			c.Subjects = []string{leaseSubject(strconv.FormatUint(c.FirstSeq, 10), ">")}
		}
	}
	return streams
}

// bucket is a key-value bucket as nats.go makes it, but that it is read from its
// leader only, unless change says otherwise.
func bucket(name string, change func(*jetstream.StreamConfig)) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              "KV_" + name,
		Subjects:          []string{"$KV." + name + ".>"},
		MaxMsgsPerSubject: 1,
		AllowRollup:       true,
		DenyDelete:        true,
		Discard:           jetstream.DiscardNew,
	}
	change(&c)
	return c
}

// firstSeq makes the numbers of a stream start above those of all streams that
// had its name before.
func (q *Queue) firstSeq() uint64 { return uint64(q.cfg.wall().UnixMicro()) }
