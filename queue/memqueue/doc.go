// SPDX-License-Identifier: Apache-2.0

// Package memqueue is the queue in memory: the shortest program that keeps every
// promise of the contract, for tests and as the reference to read.
//
// A [Broker] holds the jobs and lives as long as its process; nothing is stored.
// Each [Queue] stands for one process that is connected to it, so that closing
// one, leases and all, looks like the death of a worker to the others.
//
// Everything that time does (a delay that ends, a lease that runs out) happens
// when somebody looks: a waiting Lease sleeps until the next such moment.
package memqueue
