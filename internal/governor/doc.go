// SPDX-License-Identifier: Apache-2.0

// Package governor keeps runs within what was decided about them and within their limits.
//
// Every worker of a fleet has one, and so has tidemill run. Of those on one queue a single
// one works at a time, by a claim on the queue's roster. Every few seconds it looks at the
// runs that have something in the queue:
//
//   - What the store says was decided and the queue doesn't know is told to the queue: a
//     command may have died in between, or had no queue at hand.
//   - A run that is past its deadline is stopped.
//   - A run whose agents reported to have spent its budget is paused for that.
//   - A run of which too many attempts fail for want of infrastructure is paused by the
//     breaker.
//   - A run that is complete or was ended, and of which the queue has nothing, leaves it.
//   - A run that was in the queue a moment ago and isn't any more is put in again, from
//     the store: somebody wiped the queue.
//
// All that it does goes through package producer, as if a person had asked for it. Two
// governors at once do no harm.
package governor
