// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// kind is one thing that goes wrong.
type kind string

// The kinds. What they do is in faults_linux_test.go.
const (
	killWorker   kind = "worker-kill"   // kill -9
	freezeWorker kind = "worker-freeze" // SIGSTOP for longer than the lease, then SIGCONT
	drainWorker  kind = "worker-drain"  // SIGTERM in mid-trial
	cutWorker    kind = "worker-cut"    // connections to NATS reset and refused for longer than the lease
	muteWorker   kind = "worker-mute"   // the same, but nothing arrives and nobody says so
	clockJump    kind = "clock-jump"    // a worker's wall clock jumps, and back later
	fullDisk     kind = "full-disk"     // no byte is free under a worker's directory
	stopLeader   kind = "nats-stop"     // the leader of the jobs' stream is stopped in order, started later
	killLeader   kind = "nats-kill"     // the same with kill -9
	wipeNode     kind = "nats-wipe"     // a server loses its disk
	store503     kind = "s3-503"        // 5% of the requests are answered with 503
	storeSlow    kind = "s3-slow"       // each request takes 2 s longer
	storeLost    kind = "s3-lost"       // a tenth of the writes is done and the answer dropped
	storeRefuse  kind = "s3-refuse"     // no commit may be written: each is answered with 403
)

var allKinds = []kind{
	killWorker, freezeWorker, drainWorker, cutWorker, muteWorker, clockJump, fullDisk,
	stopLeader, killLeader, wipeNode, store503, storeSlow, storeLost, storeRefuse,
}

// parseKinds reads a list of kinds with commas between them; all is all of them.
func parseKinds(text string) ([]kind, error) {
	if text == "all" {
		return allKinds, nil
	}
	var list []kind
	for word := range strings.SplitSeq(text, ",") {
		if k := kind(word); slices.Contains(allKinds, k) {
			list = append(list, k)
			continue
		}
		return nil, fmt.Errorf("-chaos.faults %q: want all, or some of %v", word, allKinds)
	}
	return list, nil
}

// fault is one entry of a plan.
type fault struct {
	Kind kind `json:"kind"`
	// At is after how many commits it begins.
	At int `json:"at_commits"`
	// For is how many commits it lasts, and Hold how long at least. What lasts is ended
	// after four times Hold in any case, or nothing would go on where everything waits for it.
	For  int           `json:"for_commits,omitempty"`
	Hold time.Duration `json:"hold_ns,omitempty"`
	// Worker is the number of the worker that it befalls.
	Worker int `json:"worker"`
	// Jump is by how much a clock jumps.
	Jump time.Duration `json:"jump_ns,omitempty"`
}

// jumps of clocks: about what a lease is, more than the server tolerates at start, more
// than signatures tolerate, and a wrong day.
var jumps = []time.Duration{
	-26 * time.Hour, -20 * time.Minute, -time.Minute, -4 * time.Second,
	4 * time.Second, time.Minute, 20 * time.Minute, 26 * time.Hour,
}

// scale is what a plan is made for.
type scale struct {
	trials, workers int
	lease           time.Duration
}

// draw makes the plan of a seed: one fault for every twelve trials, and each kind once at
// least, between a twentieth and six sevenths of the way.
func draw(seed uint64, s scale, kinds []kind) []fault {
	rng := rand.New(rand.NewPCG(seed, 0x7469_6465_6d69_6c6c))
	var plan []fault
	for n := 0; n < max(s.trials/12, len(kinds)) && len(kinds) > 0; n++ {
		k := kinds[n%len(kinds)] // each kind as often as any other
		first := s.trials / 20
		f := fault{Kind: k, At: first + rng.IntN(max(1, s.trials*6/7-first)), Worker: rng.IntN(s.workers)}
		f.For = 3 + rng.IntN(8)
		vary := time.Duration(rng.Int64N(int64(s.lease)))
		switch k {
		case killWorker, drainWorker:
			f.For = 0
		case wipeNode:
			f.For = 0
			f.Worker = 0
		case freezeWorker, cutWorker, muteWorker:
			f.Hold = s.lease + time.Second + vary/2
		case storeSlow:
			f.Hold = 2 * time.Second
			f.Worker = 0
		case stopLeader, killLeader, store503, storeLost:
			f.Hold = 2*time.Second + vary
			f.Worker = 0
		case storeRefuse:
			f.Hold = 2*s.lease + vary
			f.For = 0 // there are none
			f.Worker = 0
		case clockJump:
			f.Hold = time.Second + vary
			f.Jump = jumps[rng.IntN(len(jumps))]
		case fullDisk:
			f.Hold = time.Second + vary/2
			f.Worker = 0 // the one with a disk of its own
		}
		plan = append(plan, f)
	}
	slices.SortStableFunc(plan, func(a, b fault) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind)) })
	return plan
}

func (f fault) String() string {
	text := fmt.Sprintf("%s at %d commits", f.Kind, f.At)
	if f.Jump != 0 {
		text += " by " + f.Jump.String()
	}
	return text
}
