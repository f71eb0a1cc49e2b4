// SPDX-License-Identifier: Apache-2.0

// Package dispatch is what producers, workers and readers of a store agree on: what a
// job's body says, how a run looks to the queue, and how run.yaml is read.
package dispatch
