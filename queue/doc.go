// SPDX-License-Identifier: Apache-2.0

// Package queue is the contract for handing work out for exactly as long as
// someone is alive to do it.
//
// A producer opens a run, publishes its jobs in batches and goes away. Workers
// ask for one job per free slot and get a [Lease], which they extend while they
// work and end with exactly one of Done, Retry, HandBack or Bury. A worker that dies stops
// extending, and the job is handed out again.
//
// # What a queue is not
//
// A queue dispatches; the store decides. Everything a queue holds can be deleted
// at any moment and be published anew from the store, so nothing here may be the
// only place that knows something. In particular:
//
//   - A job may be delivered again although it was done. The receiver looks at
//     the store first and answers with Done at once.
//   - Two holders may believe for a short while that they own the same job. The
//     store's create-if-absent settles whose result counts; the [Fence] only
//     keeps the overlap short and tells the loser as early as possible.
//   - How often something was delivered says nothing about how often it ran.
//     Only lease and commit say what is fresh.
//
// # Identity
//
// A job is one trial in one epoch, released once: its id is
// <trial>.<epoch>.<release>. Publishing an id that the queue knows already, or
// knew within its deduplication window, stores nothing. The release number grows
// whenever the same trial and epoch has to be put in again (after a purge, a
// resume, a retry), so that deduplication can never swallow work. At most one
// live job exists per run and trial: publishing a newer release of a trial that
// is still waiting replaces nothing and is reported as [Published.Skipped].
//
// # Which call to reach for first
//
// Producers need [Runs.OpenRun] and [Publisher.Publish]. Workers need
// [Consumer.Lease] and the [Lease] it returns. Everything else is for operators.
//
// The package imports nothing of ours. Implementations live below it and pass
// the suite in queuetest.
package queue
