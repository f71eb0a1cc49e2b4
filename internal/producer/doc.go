// SPDX-License-Identifier: Apache-2.0

// Package producer turns a run file into trials and hands them to the queue.
//
// It works in two passes over the tasks, so that nothing is written before everything
// was found to be right, and so that memory doesn't grow with their number:
//
//	Draft    reads and checks all, computes digests and counts      no store needed
//	Submit   writes run.yaml, packs and plan, and enqueues
//
// Submit may be repeated after a crash at any moment: run.yaml claims the run id, plan
// parts and packs are the same bytes each time, and jobs carry ids.
package producer
