// SPDX-License-Identifier: Apache-2.0

// Package sweep removes what crashes left: sandboxes and their parts, spool, directories.
//
// [Decide] is the rule, a function of what is known and of nothing else. A [Sweeper] goes
// through everything that there is, applies the rule, and removes what may go; a worker has
// one, which does that when it starts and from time to time. What has to hold:
//
//   - Only what belongs to the same store goes, and is destroyed by its handle. A name is
//     no proof of anything.
//   - What a living process made stays, and so does what somebody kept, until its time is
//     over.
//   - What is young stays: whoever makes something needs a moment to say that it lives.
//   - Where other processes make such things too, an engine that several share or a
//     provider of sandboxes, a thing stays until it has expired, or until the queue says
//     that its trial is not its maker's any more. Who can't be asked has not said so.
//   - A failure is logged and counted, and nothing else: what could not be removed today is
//     tried again next time.
package sweep
