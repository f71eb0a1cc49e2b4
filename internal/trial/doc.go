// SPDX-License-Identifier: Apache-2.0

// Package trial runs one attempt of one trial from an open environment to a bundle
// on the local disk.
//
// [Run] is the whole life of an attempt between lease and upload:
//
//	provision ▸ (setup ▸ agent ▸ end processes ▸ grade ▸ collect) per step
//	          ▸ collect the workdir ▸ capture service logs ▸ teardown ▸ write records
//
// It never returns an error: whatever happens is an outcome, and the table in
// outcome.go is the only place that says which. It knows runtimes and bundles only
// by their contracts, and nothing of queues, leases and commits: those are the
// worker's.
//
// # Rules
//
//   - What a program inside does can't make an attempt fail as if it were ours: files
//     in the way of collection, reports that can't be read and names that are taken
//     end up as flags and in artifacts.json.
//   - A verdict that was reached stands: cancellation, capture and teardown that come
//     after it don't change it. Only a sandbox that dies, or a disk of ours that fails,
//     before its evidence was collected does.
//   - The verdict's directory, tests and solution exist only in their phase, in each
//     step anew.
//   - Records hold no secret value: free text is redacted before it is encoded, so that
//     a value that looks like one of our own words doesn't blot a record out.
package trial
