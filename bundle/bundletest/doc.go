// SPDX-License-Identifier: Apache-2.0

// Package bundletest checks that a store keeps the promises of [bundle.Store], and has
// a store that breaks them on request.
//
// Whoever writes a store runs the suite from a test of its package:
//
//	func TestStore(t *testing.T) {
//		bundletest.Run(t, bundletest.Harness{
//			Open: func(t *testing.T) bundle.Store { return open(t, t.TempDir()) },
//		})
//	}
//
// [Faulty] wraps any store for the tests of those who use one: calls that stall, fail,
// lose their answer, run out of space or lie.
package bundletest
