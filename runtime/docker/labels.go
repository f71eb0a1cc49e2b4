// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"strconv"
	"time"

	"github.com/docker/docker/api/types/filters"

	"github.com/tidemill/tidemill/runtime"
)

// The labels of all that is created. The engine can't change those of a container, so
// what changes is in the owner's record.
const (
	labelPrefix = "dev.tidemill."

	labelManaged = labelPrefix + "managed" // "docker": made by this runtime
	labelStore   = labelPrefix + "store"
	labelRun     = labelPrefix + "run"
	labelTask    = labelPrefix + "task"
	labelTrial   = labelPrefix + "trial"
	labelIndex   = labelPrefix + "trial_index"
	labelAttempt = labelPrefix + "attempt"
	labelWorker  = labelPrefix + "worker"
	labelExpires = labelPrefix + "expires_at"

	labelName   = labelPrefix + "name"   // of the sandbox
	labelNonce  = labelPrefix + "nonce"  // of the sandbox: ties what belongs to one together
	labelHost   = labelPrefix + "host"   // the machine of the maker
	labelRecord = labelPrefix + "record" // where on it the owner's record is
)

// mark makes the labels of everything that one estate has.
func (e *estate) mark() map[string]string {
	l := e.Labels
	m := map[string]string{
		labelManaged: Type,
		labelStore:   l.Store,
		labelRun:     l.Run,
		labelTask:    l.Task,
		labelTrial:   l.Trial,
		labelIndex:   strconv.Itoa(l.TrialIndex),
		labelAttempt: strconv.Itoa(l.Attempt),
		labelWorker:  l.Worker,
		labelName:    e.Name,
		labelNonce:   e.Nonce,
		labelHost:    e.Host,
		labelRecord:  e.path,
	}
	if !l.ExpiresAt.IsZero() {
		m[labelExpires] = l.ExpiresAt.UTC().Format(time.RFC3339Nano)
	}
	return m
}

// read is the way back. What can't be read is left empty: somebody else may have made
// the thing.
func read(m map[string]string) runtime.Labels {
	l := runtime.Labels{
		Store: m[labelStore], Run: m[labelRun], Task: m[labelTask], Trial: m[labelTrial], Worker: m[labelWorker],
	}
	l.TrialIndex, _ = strconv.Atoi(m[labelIndex])
	l.Attempt, _ = strconv.Atoi(m[labelAttempt])
	l.ExpiresAt, _ = time.Parse(time.RFC3339Nano, m[labelExpires])
	return l
}

// ours selects what this runtime made for a store.
func ours(store string) filters.Args {
	return filters.NewArgs(filters.Arg("label", labelManaged+"="+Type), filters.Arg("label", labelStore+"="+store))
}

// of selects what belongs to one estate.
func of(nonce string) filters.Args {
	return filters.NewArgs(filters.Arg("label", labelManaged+"="+Type), filters.Arg("label", labelNonce+"="+nonce))
}
