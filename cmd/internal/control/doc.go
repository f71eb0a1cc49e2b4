// SPDX-License-Identifier: Apache-2.0

// Package control brings orders about runs to where they are obeyed: to the process that
// works a data directory, over its socket; to the store and the queue of a fleet; or to
// the store alone, where whoever works on the run next finds them.
package control
