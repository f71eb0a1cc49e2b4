// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks a fleet on purpose and counts what became of its trials.
//
// It is a test, and a program in the clothes of one: make chaos, or
//
//	go test ./cmd/internal/chaos -run '^TestChaos$' -args -chaos.trials 2000 -chaos.seed 7
//
// Real workers, each a process of the binary that is built from the tree, run trials from a
// cluster of three NATS servers and store them in a real S3 service. What happens to them
// is drawn from the seed: which faults, in which order, after how many commits, to whom,
// and for how long. So a seed gives the same plan again; how the processes interleave is
// their own affair.
//
// At the end everything is compared with what had to come: each trial of the plan has its
// commit and one only, the verdict is the one that its row asks for, every file is the one
// that was sealed, and nothing is left behind. See docs/reliability.md.
package chaos
