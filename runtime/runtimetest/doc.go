// SPDX-License-Identifier: Apache-2.0

// Package runtimetest checks that a runtime keeps the promises of package
// runtime.
//
// An implementation runs it from a test of its own:
//
//	func TestConformance(t *testing.T) {
//		runtimetest.Run(t, runtimetest.Harness{
//			Provider: func(t *testing.T) runtimetest.Provider {
//				root := t.TempDir()
//				return runtimetest.Provider{
//					Runtime: func(t *testing.T) runtime.Runtime { … on root … },
//					Left:    func(t *testing.T, mark string) []string { … },
//				}
//			},
//		})
//	}
//
// Two ideas carry the suite. A [Provider] is where sandboxes live (a directory, a
// container engine, an account); several runtime values on one provider are
// several workers. [Programs] turns a list of [Step] values into an argument
// vector, so that the suite asks for behaviour ("print this, leave a child, hold")
// and each runtime says how: [Shell] fits whatever has a POSIX sh inside.
//
// What a runtime can't do it says in its Properties, or as a field of [Harness];
// the suite then checks the refusal instead of skipping the topic.
//
// The suite waits for events and asserts no times. What should never take long has
// [Harness.Patience], which only turns a hang into a failure.
package runtimetest
