// SPDX-License-Identifier: Apache-2.0

package runtimetest

import "testing"

// Run checks one implementation, topic by topic. Every topic has a provider of its
// own and ends with a look at what is left there.
func Run(t *testing.T, h Harness) {
	h = h.withDefaults()
	topic := func(name string, check func(*fixture)) {
		t.Run(name, func(t *testing.T) { check(newFixture(t, h)) })
	}

	// Whose it is.
	topic("GivenName", testGivenName)
	topic("GeneratedNames", testGeneratedNames)
	topic("BadNames", testBadNames)
	topic("Conflict", testConflict)
	topic("RaceForAName", testRaceForAName)
	topic("Neighbours", testNeighbours)
	topic("Places", testPlaces)

	// Running programs.
	topic("ArgvVerbatim", testArgvVerbatim)
	topic("ExitCodes", testExitCodes)
	topic("SignalDeaths", testSignalDeaths)
	topic("StartErrors", testStartErrors)
	topic("Directory", testDirectory)
	topic("Environment", testEnvironment)
	topic("NothingOfTheHost", testNothingOfTheHost)
	topic("Stdin", testStdin)
	topic("Streams", testStreams)
	topic("Flood", testFlood)
	topic("StreamsWhileRunning", testStreamsWhileRunning)
	topic("Timeout", testTimeout)
	topic("Cancel", testCancel)
	topic("SideBySide", testSideBySide)
	topic("EndProcesses", testEndProcesses)
	topic("LoudChild", testLoudChild)
	topic("OwnProcesses", testOwnProcesses)

	// Files.
	topic("RoundTrip", testRoundTrip)
	topic("CopyInUnder", testCopyInUnder)
	topic("CopyInRefuses", testCopyInRefuses)
	topic("CopyInFollowsNoLink", testCopyInFollowsNoLink)
	topic("CopyInLimits", testCopyInLimits)
	topic("CopyInBadStream", testCopyInBadStream)
	topic("Fresh", testFresh)
	topic("FreshOverLinks", testFreshOverLinks)
	topic("Gone", testGone)
	topic("GoneOverLinks", testGoneOverLinks)
	topic("CopyOutNames", testCopyOutNames)
	topic("CopyOutRefuses", testCopyOutRefuses)
	topic("CopyOutFollowsNoLink", testCopyOutFollowsNoLink)
	topic("CopyOutSpecials", testCopyOutSpecials)
	topic("CopyOutLimits", testCopyOutLimits)
	topic("Root", testRoot)
	topic("SpecWorkdir", testSpecWorkdir)

	// The end.
	topic("Close", testClose)
	topic("CloseAfterCancel", testCloseAfterCancel)
	topic("CloseUnderACommand", testCloseUnderACommand)
	topic("AfterClose", testAfterClose)
	topic("List", testList)
	topic("Destroy", testDestroy)
	topic("DestroyStaleHandle", testDestroyStaleHandle)
	topic("Abandoned", testAbandoned)
	topic("Keep", testKeep)
	topic("KeptName", testKeptName)
	topic("AttachAbandoned", testAttachAbandoned)

	// What is refused, what is offered.
	topic("RefusedByPrepare", testRefusedByPrepare)
	topic("RefusedByOpen", testRefusedByOpen)
	topic("FailedOpen", testFailedOpen)
	topic("OpenCancelled", testOpenCancelled)
	topic("Phases", testPhases)
	topic("Users", testUsers)
	topic("PrivatePlace", testPrivatePlace)
	topic("Evidence", testEvidence)
	topic("Described", testDescribed)
	topic("Ingress", testIngress)
}
