// SPDX-License-Identifier: Apache-2.0

// Package natsqueue is the queue on NATS JetStream.
//
// # What is where
//
// All jobs are messages of one work-queue stream, TRIALS, under
//
//	tidemill.trials.<pool>.<class>.<run>.<trial>     waiting or in flight
//	tidemill.delayed.<pool>.<class>.<run>.<trial>    a schedule that publishes the former when it is due
//
// so that one filter with a star in the second place is a run, or a trial,
// whole. A message leaves the stream when its job ends. Each run has a durable
// pull consumer of its own name, whose MaxAckPending is the run's max_in_flight.
// Buried jobs are in the stream DEAD, under tidemill.dead.<run>.<trial>, and STRANDED keeps
// the server's advisories of messages that it will deliver no more, which only happens when
// somebody changed a consumer.
//
// Three key-value buckets go with them: tidemill-runs holds the open runs, which
// every value watches; tidemill-leases holds one entry for each job in flight, and
// for some minutes after its end; tidemill-starts holds when the next job of a
// rate-limited run may start. Without JetStream go tidemill.wake.<pool>.<class>,
// tidemill.news and tidemill.lost.<value>: they make things fast, and any of them
// may be lost.
//
// # Why acks are not enough
//
// JetStream's acks are not fenced: a worker that was thought dead can ack, nak
// or prolong the delivery of its successor. So the lease entry decides. It is
// written by compare-and-swap; its revision when it was taken is the [queue.Fence];
// and nothing is sent about a job before the entry was swapped once more by its
// holder. Sequence numbers of TRIALS and of the leases start at the microsecond of
// their birth, so that no number means something else after either was wiped. The
// subjects of the leases have that birth in them too: who does not know yet that the
// bucket was wiped finds no stream, instead of an empty place in the new one.
//
// # Lost is not unreachable
//
// Somebody else's nonce, or no entry in a bucket that has seen ours, is
// [queue.ErrLost]. No answer is [queue.ErrUnreachable]: nobody knows, and what was
// asked may have been done. When a connection comes back the value renews all of
// its leases at once, and takes over nobody's until LeaseSettle has passed.
//
// # What an operator may do
//
// Anything can be deleted while workers run; [Queue.OpenRun] and [Queue.Publish] put it
// back. [Open] refuses what can't serve: see the errors of this package. docs/nats.md is
// the page for who runs the server.
//
// # Finding work
//
// See [Queue.Lease] for how a free slot takes its turn among hundreds of runs
// without polling them all.
package natsqueue
