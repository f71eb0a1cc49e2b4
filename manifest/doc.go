// SPDX-License-Identifier: Apache-2.0

// Package manifest is what a person writes: run files, packs and (for stacks)
// environment manifests. It loads, merges, checks and expands them.
//
// # From a file to trials
//
//	Load           run file, variables and matrix expanded     []*Run
//	OpenPack       a pack's directory, checked                 *Pack
//	Pack.Tasks     its tasks, streamed                          iter of TaskRef
//	Pack.Archive   the pack as a worker gets it                 sha256
//	Archive        the same for any directory (agent.files)     sha256
//	Pack.Task      one task with its files and commands         *Task
//
// The producer uses the first five; a worker unpacks an archive by its digest
// ([Unpack]), opens it with the same OpenPack and asks for single tasks.
//
// A pack is of a dataset (pack.yaml, files datasetpack.go and on) or of Harbor tasks
// (task.toml, files harbor….go). Readers see no difference but that a Harbor task that
// can't run can be left out, and that each says for itself what it needs of a runtime
// ([Pack.Various]).
//
// # Errors
//
// What is wrong in a file is a [Problem]: file, line, entry, what is wrong and
// what would be right. Loading reports every problem that it finds ([Problems]),
// not only the first one. Unknown keys are problems, with the nearest known key.
//
// The package imports nothing of ours.
package manifest
