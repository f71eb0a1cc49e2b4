// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
)

// Names of what lives on the server. One account serves one store, so they are
// not configurable.
const (
	trialsStream   = "TRIALS"
	deadStream     = "DEAD"
	strandedStream = "STRANDED"

	runsBucket   = "tidemill-runs"
	leasesBucket = "tidemill-leases"
	startsBucket = "tidemill-starts"

	leasesStream = "KV_" + leasesBucket
	startsStream = "KV_" + startsBucket

	waitingSpace = "trials"
	delayedSpace = "delayed"
)

// Headers of ours.
const (
	jobHeader    = "Tidemill-Job"    // <trial>.<epoch>.<release>, where there is no message id
	reasonHeader = "Tidemill-Reason" // of a dead letter, quoted
)

// place is the part of a subject that tells runs apart.
func place(r queue.Run) string {
	return r.Pool + "." + string(r.Class) + "." + r.ID
}

func jobSubject(space string, r queue.Run, trial string) string {
	return "tidemill." + space + "." + place(r) + "." + trial
}

// anywhere matches a trial whether it waits or is delayed.
func anywhere(r queue.Run, trial string) string { return jobSubject("*", r, trial) }

func runFilter(space string, r queue.Run) string { return jobSubject(space, r, ">") }

func deadSubject(run, trial string) string { return "tidemill.dead." + run + "." + trial }

func wakeSubject(pool string, class queue.Class) string {
	return "tidemill.wake." + pool + "." + string(class)
}

// newsSubject is where every value hears which runs have got jobs.
const newsSubject = "tidemill.news"

// lostSubject is where a value hears that a lease of its own was taken over.
func lostSubject(value string) string { return "tidemill.lost." + value }

func leaseKey(run, trial string) string { return run + "." + trial }

// leaseSubject has the bucket's birth in it: what was meant for an earlier bucket
// finds no stream, instead of an empty place in the new one.
func leaseSubject(birth, key string) string { return "$KV." + leasesBucket + "." + birth + "." + key }

func leaseFilter(run string) string { return leaseSubject("*", run+".>") }

// birthOf returns the birth in the subject of a lease bucket, or "" if it has none.
func birthOf(c jetstream.StreamConfig) string {
	if c.Name != leasesStream || len(c.Subjects) != 1 {
		return ""
	}
	birth, ok := strings.CutSuffix(strings.TrimPrefix(c.Subjects[0], "$KV."+leasesBucket+"."), ".>")
	if _, err := strconv.ParseUint(birth, 10, 64); !ok || err != nil {
		return ""
	}
	return birth
}

// maxDeliveries is where the server tells of messages that it will deliver no more.
const maxDeliveries = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES." + trialsStream + "."

// messageID is what deduplication compares. The run is in it because only the
// production's trial ids tell runs apart.
func messageID(run string, id queue.ID) string { return run + "/" + id.String() }

// trialOf returns the last token of a job's subject.
func trialOf(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// runOf returns the run of a job's subject, or "".
func runOf(subject string) string {
	parts := strings.Split(subject, ".")
	if len(parts) < 2 {
		return ""
	}
	return parts[len(parts)-2]
}

// idOf reads a job's id from its headers. What a schedule emits has lost its
// message id.
func idOf(get func(string) string) (queue.ID, error) {
	text := get(jobHeader)
	if text == "" {
		_, text, _ = strings.Cut(get("Nats-Msg-Id"), "/")
	}
	id, err := queue.ParseID(text)
	if err != nil {
		return queue.ID{}, fmt.Errorf("message headers: %w", err)
	}
	return id, nil
}
