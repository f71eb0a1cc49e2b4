// SPDX-License-Identifier: Apache-2.0

// Package worker leases trials, runs them, and says what became of them.
//
// A [Worker] has slots. Each slot asks the queue for one job, never ahead, and runs it
// through package trial. When the sandbox is gone the slot is free; sealing, upload and
// commit go on beside it, out of a bounded spool on disk. A goroutine of its own renews
// the lease all the while.
//
// # Order of writes
//
// claim ▸ files, index ▸ commit ▸ end ▸ result ▸ done. A crash between any two leaves a
// state that the next delivery handles; see package bundle.
package worker
