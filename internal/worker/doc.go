// SPDX-License-Identifier: Apache-2.0

// Package worker leases trials, runs them, and says what became of them.
//
// A [Worker] has slots. Each slot asks the queue for one job, never ahead, and runs it
// through package trial. When the sandbox is gone the slot is free; sealing, upload and
// commit go on beside it, out of a bounded spool on disk. A goroutine of its own renews
// the lease all the while, and ends before the answer that ends the lease.
//
// # Order of writes
//
// claim ▸ files, index ▸ commit ▸ end ▸ result ▸ done. A crash between any two leaves a
// state that the next delivery handles; see package bundle. A hand-over is in a hurry:
// claim ▸ end ▸ answer ▸ files, index.
//
// # What it begins
//
// A slot asks for a job while the gate is open, which is held by too little disk or memory
// and by a trial that runs alone, and while the quota lasts. Trials that were running when
// their worker died run alone, and one that kills worker after worker is buried; see
// Config.PoisonAfter. Runs whose secrets it lacks it leaves to others; see Config.Others.
//
// # What fails
//
//   - The trial: the outcome table of package trial and the run's retry rules decide
//     between commit, retry, and commit as a dead letter.
//   - The store, for a while: calls are repeated within Config.StoreRetry. For longer: the
//     bundle stays in unsent/ of the worker's directory, nothing is committed, and the
//     trial is tried again, uncharged and ever more seldom. The next worker in the
//     directory sends the bundle.
//   - The queue: lost is not unreachable; see Config.OutageGrace.
//   - Our own code, or a runtime's: a panic is caught at the attempt's border. It becomes
//     an infra_error with the stack in the bundle, and the trials beside it go on.
package worker
