// SPDX-License-Identifier: Apache-2.0

// Package report turns the commits of a run into numbers: aggregate.json, its
// companions, and the table that a terminal shows.
//
// An [Accumulator] is given every trial of the plan in plan order, together with its
// commit if it has one, and writes the reports through a [Spool]. It reads nothing
// itself. What it keeps does not grow with the number of trials: a task is closed
// when the next one begins, and lists have a bound beyond which they go to a file of
// their own.
//
// # Exactness
//
// Everything that is added up is added up in integers: scores and costs in
// millionths, latencies in milliseconds, means over tasks in units of 1e-12. Sums of
// integers don't depend on order, so the same commits give the same bytes however
// they were read. What a division or a root makes is rounded to 12 decimals, so that
// processors that fuse multiplication and addition agree with those that don't.
//
// # Denominators
//
// Trials are planned; a planned trial is committed or missing; a committed trial is
// scored or unscored; a scored trial passed or not. Success and score are over scored
// trials, latency, tokens, cost and counts of outcomes over committed ones. Where
// nothing was scored there is no rate, and null says so. docs/aggregate.md has the
// table of every key.
package report
