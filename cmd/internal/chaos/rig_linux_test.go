// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/s3store"
	"github.com/tidemill/tidemill/internal/testenv"
)

// rig is a whole fleet with all that it stands on.
type rig struct {
	t       *testing.T
	dir     string // kept when something is wrong
	program string
	seed    uint64
	run     string
	scale
	slots  int
	settle time.Duration
	deeds  []deed

	s3      testenv.S3Server
	prefix  string
	store   bundle.Store // past the tap
	tap     *tap
	nodes   []node
	what    string // the nodes are
	monitor *monitor
	members []*member

	began      time.Time
	log        []entry
	report     report
	killed     []death
	windows    []window
	leaderless []window        // those of windows in which nobody led the jobs or the leases
	watched    chan leaderTime // elections that are over
	waiting    int             // those that are being waited for
	nodeDown   string          // the server that is away
}

// death is a worker that was killed, for the time until its trials ran again.
type death struct {
	worker string
	at     time.Time
}

// window is a time in which the queue or the store was broken.
type window struct {
	kind     kind
	from, to time.Time
}

// disturbed notes that something of everybody's was broken until now.
func (r *rig) disturbed(f fault, from time.Time) {
	if strings.HasPrefix(string(f.Kind), "s3-") || strings.HasPrefix(string(f.Kind), "nats-") {
		r.windows = append(r.windows, window{f.Kind, from, time.Now()})
	}
}

// meanwhile lists what of queue and store was broken in some part of a time.
func (r *rig) meanwhile(from, to time.Time) (kinds []kind) {
	for _, w := range r.windows {
		if w.from.Before(to) && from.Before(w.to) && !slices.Contains(kinds, w.kind) {
			kinds = append(kinds, w.kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// election is how much of a time lies in windows in which nobody could have begun a trial,
// since nobody led the jobs or the leases. A store that fails or is slow, and a server that is
// away while others lead, are no excuse.
func (r *rig) election(from, to time.Time) time.Duration {
	return overlap(r.leaderless, from, to)
}

// overlap is how much of a time lies in at least one of the windows.
func overlap(windows []window, from, to time.Time) (sum time.Duration) {
	windows = slices.SortedFunc(slices.Values(windows), func(a, b window) int { return a.from.Compare(b.from) })
	for _, w := range windows {
		if w.from.Before(from) {
			w.from = from
		}
		if w.to.After(to) {
			w.to = to
		}
		if w.from.Before(w.to) {
			sum += w.to.Sub(w.from)
			from = w.to // what two windows share counts once
		}
	}
	return sum
}

// entry is a line of the fault log.
type entry struct {
	At      float64 `json:"at_s"`
	Commits int     `json:"commits"`
	What    string  `json:"what"`
}

func (r *rig) note(format string, args ...any) {
	e := entry{time.Since(r.began).Seconds(), r.tap.committed(), fmt.Sprintf(format, args...)}
	r.log = append(r.log, e)
	if *verbose {
		r.t.Logf("%7.2f s %5d  %s", e.At, e.Commits, e.What)
	}
}

// queueFlags are those that everybody on the queue has.
func (r *rig) queueFlags() []string {
	return []string{"--nats-replicas", "3", "--lease-ttl", r.lease.String()}
}

// env is what processes get: nothing of the machine's that could change what they do.
func (r *rig) env() []string {
	keep := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains([]string{"PATH", "HOME", "TMPDIR", "LANG"}, name)
	})
	return append(keep, r.s3.Env()...)
}

// tidemill runs a command to its end.
func (r *rig) tidemill(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), r.program, args...)
	cmd.Env = r.env()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("tidemill %s: %v\n%s", args[0], err, &stderr)
	}
	return stdout.String()
}

// set puts everything up, with the run in the queue and no worker yet.
func (r *rig) set(how string, clock bool) {
	t := r.t
	t.Helper()
	for _, d := range []string{"logs", "bin"} {
		if err := os.MkdirAll(filepath.Join(r.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.program = buildTidemill(t, filepath.Join(r.dir, "bin"), clock)
	r.s3 = testenv.S3(t)
	r.prefix = r.s3.Prefix()
	r.tap = newTap(t, r.s3.Endpoint)
	opts, err := s3store.Parse(r.s3.URL(r.prefix, ""))
	if err != nil {
		t.Fatal(err)
	}
	store, err := s3store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r.store = store
	r.nodes, r.what = startNodes(t, how, filepath.Join(r.dir, "logs"))
	r.monitor = newMonitor(t, r.nodes, r.run)
	r.await("the NATS cluster", time.Minute, func() error { return r.monitor.ready(t.Context()) })
	r.place()
	r.submit()
}

// place makes the places of the fleet. The first has a disk of its own, where that is
// permitted.
func (r *rig) place() {
	for n := range r.workers {
		m := &member{n: n, dir: filepath.Join(r.dir, fmt.Sprint("work-", n)), clock: filepath.Join(r.dir, fmt.Sprint("clock-", n))}
		for _, to := range r.nodes {
			l, err := newLink(host(to))
			if err != nil {
				r.t.Fatal(err)
			}
			r.t.Cleanup(l.close)
			m.links = append(m.links, l)
		}
		if n == 0 {
			disk, err := mountSmall(m.dir)
			if err != nil {
				r.note("no fault %s: %v", fullDisk, err)
			} else {
				r.t.Cleanup(disk.unmount)
				m.disk = disk
			}
		}
		r.members = append(r.members, m)
	}
}

func (r *rig) submit() {
	var urls []string
	for _, n := range r.nodes {
		urls = append(urls, n.URL())
	}
	args := append([]string{
		"submit", "--queue", strings.Join(urls, ","), "--store", r.s3.URL(r.prefix, ""), "--run-id", r.run,
	}, r.queueFlags()...)
	r.tidemill(append(args, writeRun(r.t, r.dir, r.seed, r.deeds))...)
}

// await asks until there is no error.
func (r *rig) await(what string, patience time.Duration, ask func() error) {
	r.t.Helper()
	for end := time.Now().Add(patience); ; {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s: %v after %v", what, err, patience)
		}
		time.Sleep(100 * time.Millisecond) // nothing tells
	}
}

// listCommits are the epochs of the commits that are there, by trial.
func (r *rig) listCommits(ctx context.Context) (map[string][]int, error) {
	commits := map[string][]int{}
	for info, err := range r.store.List(ctx, bundle.Keys{Run: r.run}.Commits()) {
		if err != nil {
			return nil, err
		}
		if trial, epoch, ok := bundle.ParseCommitKey(info.Key); ok {
			commits[trial] = append(commits[trial], epoch)
		}
	}
	return commits, nil
}

// keepStore copies what the store has of the run beside the logs: the service ends with
// the test.
func (r *rig) keepStore(ctx context.Context) error {
	for info, err := range r.store.List(ctx, bundle.Keys{Run: r.run}.Prefix()) {
		if err != nil {
			return err
		}
		body, _, err := r.store.Get(ctx, info.Key)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(body)
		body.Close()
		if err != nil {
			return err
		}
		file := filepath.Join(r.dir, "store", filepath.FromSlash(info.Key))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
