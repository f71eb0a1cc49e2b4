// SPDX-License-Identifier: Apache-2.0

package trial

import "slices"

// Flags of outcomes, beside that of the outcome table.
const (
	// FlagProcessesKept: the agent's processes went on while the grader worked.
	FlagProcessesKept = "agent_processes_kept"
	// FlagCollection: some of what the agent left could not be collected.
	FlagCollection = "collection_incomplete"
	// FlagTeardown: something of the sandbox could not be removed.
	FlagTeardown = "teardown_incomplete"
	// FlagEntered: somebody ran a command of their own in the sandbox meanwhile.
	FlagEntered = "entered_by_hand"
	// FlagHealthcheck: a step's health check failed after an agent had worked, and the task
	// ended there.
	FlagHealthcheck = "healthcheck_failed"
	// FlagRegraded: the agent didn't run; what an earlier attempt left was graded again.
	FlagRegraded = "regraded"
	// FlagUnreadable and a file's name: the agent left a report that can't be used.
	FlagUnreadable = "unreadable_"
)

func (a *attempt) flag(name string) {
	if !slices.Contains(a.flags, name) {
		a.flags = append(a.flags, name)
	}
}
