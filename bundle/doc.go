// SPDX-License-Identifier: Apache-2.0

// Package bundle is sealed evidence: what an attempt leaves behind, the records
// that say what counts, and the contract of the store that holds them.
//
// A [Store] is seven calls over keys and bytes. Everything else is written once on
// top of it, in this package: keys ([Keys]), the identity of a store, attempts and
// their claims, the bundle writer with its index, and the commit.
//
// # What decides
//
// The store decides. A trial is done if and only if the commit of its current epoch
// exists, and a commit is written with create-if-absent, so there is exactly one. An
// attempt writes only below its own number, and its number is claimed with
// create-if-absent too, so nothing is ever overwritten.
//
// # Order of writes
//
//	claim of attempt n                 create-if-absent
//	files of attempt n, index.json     put; the index last
//	commit of the epoch                create-if-absent
//	end of attempt n                   create-if-absent
//	result.json                        put; for people who browse
//
// A crash between any two of these leaves a state that the next attempt handles: a
// claim without an end is a crash, files without a commit are kept evidence, a
// commit without an end or result is complete.
//
// # Compatibility
//
// Records carry schema_version. Readers keep unknown keys where they pass records on
// and refuse only a newer major version. Additive keys don't bump it.
//
// The package imports nothing of ours.
package bundle
