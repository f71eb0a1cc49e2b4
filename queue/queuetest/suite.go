// SPDX-License-Identifier: Apache-2.0

package queuetest

import "testing"

// Run holds an implementation against the contract. It calls fresh once for each
// topic.
func Run(t *testing.T, fresh func(t *testing.T) *Harness) {
	topic := func(name string, check func(s *suite)) {
		t.Run(name, func(t *testing.T) {
			check(&suite{T: t, Harness: fresh(t).withDefaults()})
		})
	}

	topic("publish/one job comes back as it went in", roundTrip)
	topic("publish/same id twice is stored once", sameIDTwice)
	topic("publish/same trial twice in a batch is stored once", sameTrialInBatch)
	topic("publish/newer release of a live trial is skipped", liveTrialIsSkipped)
	topic("publish/newer release after done is stored", releaseAfterDone)
	topic("publish/id that is done is not stored again", doneIDIsKnown)
	topic("publish/large batch is stored whole and in order", largeBatch)
	topic("publish/half known batch stores the other half", halfKnownBatch)
	topic("publish/bad job refuses the whole batch", badJobRefusesBatch)
	topic("publish/unknown run", publishToUnknownRun)
	topic("publish/same trial in two runs", sameTrialInTwoRuns)

	topic("lease/waits for a job", leaseWaits)
	topic("lease/honours its context", leaseHonoursContext)
	topic("lease/serves only its pool and classes", poolsAndClasses)
	topic("lease/serves all runs but those that are excepted", exceptedRuns)
	topic("lease/serves a class that appears later", classAppears)
	topic("lease/extend keeps it", extendKeeps)
	topic("lease/abandoned job comes back with a larger fence", abandonComesBack)
	topic("lease/closed value leaves its jobs to others", closeLeavesJobs)
	topic("lease/ends only once", endsOnce)

	topic("stale/old holder is told and changes nothing", staleHolder)
	topic("stale/old holder of a done job is told", staleHolderOfDone)

	topic("retry/comes later with the next release and body", retryLater)
	topic("retry/at once", retryAtOnce)
	topic("retry/keeps the body", retryKeepsBody)
	topic("retry/takes no place in max in flight", retryFreesPlace)
	topic("retry/is live", retryIsLive)
	topic("retry/bad body is refused and the lease lives on", retryBadBody)

	topic("hand back/comes before what waits, to others too", handBackKeepsPlace)
	topic("hand back/comes before what was published later", handBackBeforeLater)
	topic("hand back/at the cap", handBackAtCap)

	topic("bury/keeps dead letters in order", buryKeeps)
	topic("bury/limit and reopening", buryLimit)

	topic("run/pause and resume", pauseResume)
	topic("run/paused before it has jobs", openPaused)
	topic("run/conflicts and updates", runConflicts)
	topic("run/purge drops, revokes and lets publish anew", purge)
	topic("run/purge drops delayed jobs", purgeDelayed)
	topic("run/purge leaves other runs alone", purgeLeavesOthers)
	topic("run/close forgets", closeRun)
	topic("run/close leaves what is opened meanwhile", closeAndOpen)
	topic("run/unknown", unknownRun)

	topic("limit/max in flight", maxInFlight)
	topic("limit/max in flight over two values", maxInFlightShared)
	topic("limit/max in flight raised", maxInFlightRaised)
	topic("limit/max in flight lowered", maxInFlightLowered)
	topic("limit/max starts per second", maxStarts)

	topic("turns/small run behind a large one", smallBehindLarge)
	topic("turns/priority weighs and starves nobody", priorityWeighs)
	topic("turns/priority changes while it runs", priorityChanges)

	topic("inspect/stats and runs", stats)
	topic("inspect/backlog", backlog)
	topic("inspect/holder of a lease", holder)
	topic("roster/workers come and go", rosterWorkers)
	topic("roster/one holds a claim", rosterClaims)
	topic("invalid arguments", invalidArguments)
	topic("close", closeValue)
	topic("storm/each job is done once", storm)
	topic("storm/workers that die", stormOfDeaths)
	topic("restart/jobs, delays and leases survive", restart)
}
