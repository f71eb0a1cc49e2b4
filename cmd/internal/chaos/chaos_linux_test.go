// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestChaos runs one plan, and fails if anything is not as it had to come.
func TestChaos(t *testing.T) {
	if *trials <= 0 {
		t.Skip("make chaos runs it, or -args -chaos.trials N")
	}
	kinds, err := parseKinds(*faults)
	if err != nil {
		t.Fatal(err)
	}
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000) + 1
	}
	dir, err := os.MkdirTemp("", "tidemill-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	s := scale{trials: *trials, workers: *workers, lease: *lease}
	plan := draw(*seed, s, kinds)
	r := &rig{
		t: t, dir: dir, seed: *seed, run: fmt.Sprint("chaos-", *seed), scale: s, slots: *slots, settle: *lease / 2,
		deeds: deeds(*seed, *trials), began: time.Now(), report: newReport(plan), watched: make(chan leaderTime, len(plan)),
	}
	command := fmt.Sprintf("make chaos TRIALS=%d SEED=%d FAULTS=%s", *trials, *seed, *faults)
	t.Logf("seed %d: %d faults; %s", *seed, len(plan), command)
	// Cleanups run from the last to the first: this one sees what the others left.
	t.Cleanup(func() {
		if !t.Failed() && !*keep {
			_ = os.RemoveAll(dir)
			return
		}
		t.Logf("seed %d; %s\nlogs, work directories and the store's records are kept in %s", *seed, command, dir)
	})
	r.set(*nodes, has(kinds, clockJump))
	t.Cleanup(func() {
		for _, m := range r.members {
			if m.now != nil {
				_ = m.now.cmd.Process.Kill()
				<-m.now.ended
			}
		}
	})
	work := time.Now()
	r.drive(plan)
	r.report.RunS = time.Since(work).Seconds()
	r.drain()
	r.dismiss()
	r.elections()
	r.check()
	r.finish(command)
}

func has(kinds []kind, k kind) bool {
	for _, one := range kinds {
		if one == k {
			return true
		}
	}
	return false
}

// elections waits for those that are still being watched.
func (r *rig) elections() {
	for range r.waiting {
		e := <-r.watched
		if e.err != nil {
			r.problem("%s: %v", e.kind, e.err)
			continue
		}
		w := window{e.kind, e.began, e.began.Add(time.Duration(e.seconds * float64(time.Second)))}
		r.windows, r.leaderless = append(r.windows, w), append(r.leaderless, w)
		r.report.Elections[e.kind] = append(r.report.Elections[e.kind], e.seconds)
	}
}

// finish writes the report, and fails the test if there is a problem.
func (r *rig) finish(command string) {
	t := r.t
	p := &r.report
	p.Seed, p.Trials, p.Fleet, p.Slots, p.Nodes, p.Log = r.seed, r.trials, r.workers, r.slots, r.what, r.log
	p.LeaseS, p.RerunBar = r.lease.Seconds(), r.lease.Seconds()+5
	p.StoreRequests, p.WallS = r.tap.served(), time.Since(r.began).Seconds()
	text := p.markdown(command)
	t.Logf("%s", text)
	body, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{r.dir, *out} {
		if where == "" {
			continue
		}
		if err := os.MkdirAll(where, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"chaos.json": string(body) + "\n", "chaos.md": text} {
			if err := os.WriteFile(filepath.Join(where, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(p.Problems) == 0 {
		return
	}
	if err := r.keepStore(t.Context()); err != nil {
		t.Logf("the store's records could not be kept: %v", err)
	}
	var log strings.Builder
	for _, e := range r.log {
		fmt.Fprintf(&log, "%8.2f s %6d commits  %s\n", e.At, e.Commits, e.What)
	}
	t.Logf("what happened:\n%s", &log)
	t.Errorf("%d problems:\n%s", len(p.Problems), strings.Join(p.Problems, "\n"))
}
