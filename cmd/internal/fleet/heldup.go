// SPDX-License-Identifier: Apache-2.0

// Package fleet tells what the workers on a queue's roster are there for.
package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/queue"
)

// NoWorker is what holds every run up while nobody is on the roster.
const NoWorker = "no worker is connected yet"

// maxTold is how many workers are told about by name.
const maxTold = 5

// Serves reports whether a worker takes trials of a pool and class, as far as it may take
// any.
func Serves(w queue.Presence, pool string, class queue.Class) bool {
	return w.Pool == pool && class.ServedBy(w.Offers...)
}

// Slots are those of workers that serve a pool and class and aren't stopping.
func Slots(workers []queue.Presence, pool string, class queue.Class) (sum int) {
	for _, w := range workers {
		if Serves(w, pool, class) && !w.Draining {
			sum += w.Slots
		}
	}
	return sum
}

// HeldUp says, in sentences, why nobody takes trials of a run that wait: none where
// somebody does.
func HeldUp(workers []queue.Presence, run queue.Run) []string {
	if len(workers) == 0 {
		return []string{NoWorker}
	}
	members := those(workers, func(w queue.Presence) bool { return w.Pool == run.Pool })
	if len(members) == 0 {
		return []string{fmt.Sprintf("no worker serves pool %s", run.Pool)}
	}
	able := those(members, func(w queue.Presence) bool { return run.Class.ServedBy(w.Offers...) })
	if len(able) == 0 {
		return []string{nobodyOffers(members, run, len(members) < len(workers))}
	}
	staying := those(able, func(w queue.Presence) bool { return !w.Draining })
	if len(staying) == 0 {
		return []string{"every worker that offers " + offer(needs(run.Class)) + " is stopping"}
	}
	return told(staying, run.ID)
}

// nobodyOffers names what is missing, and in which pool where there are others.
func nobodyOffers(members []queue.Presence, run queue.Run, otherPools bool) string {
	who := "no worker"
	if otherPools {
		who += " of pool " + run.Pool
	}
	all := needs(run.Class)
	missing := slices.DeleteFunc(slices.Clone(all), func(need string) bool {
		return slices.ContainsFunc(members, func(w queue.Presence) bool { return slices.Contains(w.Offers, need) })
	})
	if len(missing) == 0 { // some offer this, others that
		return who + " offers " + offer(all) + " together"
	}
	return who + " offers " + offer(missing)
}

// told says why each of these workers takes nothing of the run; nothing if one does.
func told(workers []queue.Presence, run string) []string {
	var list []string
	for _, w := range workers {
		why, refuses := w.Refuses[run]
		switch {
		case refuses:
			list = append(list, fmt.Sprintf("worker %s %s", w.Worker, why))
		case len(w.Holds) > 0:
			list = append(list, fmt.Sprintf("worker %s takes no work: %s", w.Worker, strings.Join(w.Holds, "; ")))
		default:
			return nil
		}
	}
	if more := len(list) - maxTold; more > 0 {
		list = append(list[:maxTold], fmt.Sprintf("and %d more take none of it either", more))
	}
	return list
}

func those(workers []queue.Presence, which func(queue.Presence) bool) (out []queue.Presence) {
	for _, w := range workers {
		if which(w) {
			out = append(out, w)
		}
	}
	return out
}

func needs(c queue.Class) []string { return strings.Split(string(c), "-") }

func offer(needs []string) string { return strings.Join(needs, " and ") }
