// SPDX-License-Identifier: Apache-2.0

// Package trial runs one attempt of one trial from an open environment to a bundle
// on the local disk.
//
// [Run] is the whole life of an attempt between lease and upload:
//
//	provision ▸ (setup ▸ agent ▸ end processes ▸ grade ▸ collect) per step
//	          ▸ capture service logs ▸ teardown ▸ write records
//
// It never returns an error: whatever happens is an outcome, and the table in
// outcome.go is the only place that says which. It knows runtimes and bundles only
// by their contracts, and nothing of queues, leases and commits: those are the
// worker's.
package trial
