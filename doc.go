// SPDX-License-Identifier: Apache-2.0

// Package tidemill is the map of a program that runs large evals of agents: it
// expands a run file into trials, hands them to workers, keeps the evidence of each
// and turns it all into aggregate.json. The package holds no code; everything is
// below it.
//
// # Nouns: contracts
//
//	manifest   what a person writes: run files and packs
//	queue      handing work out for exactly as long as someone is alive to do it
//	runtime    running commands in an isolated place, getting files in and out
//	bundle     sealed evidence, the records that say what counts, and the store
//
// A noun imports nothing of ours. Below each are its implementations, which import
// only their contract, and a conformance suite (queuetest, runtimetest, bundletest)
// that every implementation passes.
//
// # Verbs: what is done with them
//
//	internal/producer     run file → plan in the store → jobs in the queue
//	internal/worker       leases a job per free slot, keeps the lease alive, commits
//	internal/trial        one attempt from provisioning to a bundle on the local disk
//	internal/aggregator   commits → aggregate.json
//	internal/report       the numbers, and the table that a terminal shows
//
// and what verbs share:
//
//	internal/dispatch     what producers and workers agree on: job bodies, run.yaml
//	internal/packcache    unpacked packs on a worker's disk
//	internal/health       whether a process hangs, and whether it can work, over HTTP
//	internal/watermark    whether there is enough disk and memory to begin more
//	internal/redact       secret values out of whatever is stored
//	internal/flight       a thing made once for all who want it at the same time
//	internal/testenv      what tests need from outside
//
// A verb takes contracts and never names an implementation.
//
// # Commands
//
// cmd/tidemill is all of it in one binary; cmd/producer, cmd/worker and
// cmd/aggregator are its parts for fleets. In cmd/internal each command is a package,
// beside what they share. Only commands choose implementations: in runtimes, stores and
// queues there, and runcmd for the embedded queue.
//
// Start with README.md, then ARCHITECTURE.md. The words are defined in
// docs/glossary.md. The rules above are tests: repo_test.go and fences_test.go.
package tidemill
