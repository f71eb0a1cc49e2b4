// SPDX-License-Identifier: Apache-2.0

// Package bench measures whole paths: what a trial costs beside the bare work that it
// can't do without, what enqueuing costs beside the bare batches, and how much memory a
// worker takes. It holds only benchmarks; docs/performance.md has figures and how to get
// them.
package bench
