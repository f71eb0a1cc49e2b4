// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A bare trial does by hand what no trial can do without: it starts the same two
// children with the same isolation, writes the same files, and makes the same fsyncs.
// These are, each with the promise that it serves:
//
//	claim        1  file: attempt numbers never repeat
//	             2  its directory, which is new, and the one above
//	bundle       8  files: evidence is never thrown away
//	             2  the directories that they are in
//	             3  those above, in which something is new: attempt, index, task
//	commit       2  file, its directory: what is done stays done, and counts once
//	end          2  file, its directory: retries are charged once
//	result       2  file, its directory: people who browse see what counts
//
// These are 22, and so many are Tidemill's own. The queue of tidemill run is made anew from
// the store whenever it starts: its writes (lease, lease ends, ack 2) are only written, on
// both sides. It writes files in the plainest way, under
// their last names; nobody reads them before all is done.
type bare struct {
	dir     string
	journal *os.File // stands for the queue's log
	mu      sync.Mutex
	// children runs agent and grader of a trial.
	children func(name string) error
}

// bundleSizes are the bytes of a bundle's files, as an ordinary trial has them.
var bundleSizes = map[string]int{
	"task.yaml": 420, "trajectory.yaml": 250, "metrics.yaml": 420, "grade.yaml": 190, "env.yaml": 520,
	"index.json": 800, "logs/agent.log": 0, "logs/grader.log": 0,
}

// note makes so many writes to the queue's log.
func (t *bare) note(n int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range n {
		if _, err := t.journal.Write(make([]byte, 300)); err != nil {
			return err
		}
	}
	return nil
}

// file writes a file durably, and brings to disk the directories in which something is
// new by it.
func (t *bare) file(path string, size int, dirs ...string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(make([]byte, size)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return syncDirs(dirs...)
}

func syncDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func (t *bare) trial(i int) error {
	name := fmt.Sprintf("%032x", i)
	files := filepath.Join(t.dir, "trials", fmt.Sprintf("task-%06d", i), "0", "1")
	attempts := filepath.Join(t.dir, "attempts", name)
	commits := filepath.Join(t.dir, "commits", name[30:])
	for _, dir := range []string{filepath.Join(files, "logs"), attempts, commits} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := t.note(1); err != nil {
		return err
	}
	if err := t.file(filepath.Join(attempts, "1.json"), 330, attempts, filepath.Dir(attempts)); err != nil {
		return err
	}
	if err := t.children(name); err != nil {
		return err
	}
	for name, size := range bundleSizes {
		if err := t.file(filepath.Join(files, name), size); err != nil {
			return err
		}
	}
	index := filepath.Dir(files)
	task := filepath.Dir(index)
	if err := syncDirs(filepath.Join(files, "logs"), files, index, task, filepath.Dir(task)); err != nil {
		return err
	}
	for path, size := range map[string]int{
		filepath.Join(commits, name+".1.json"): 1100,
		filepath.Join(attempts, "1.end.json"):  380,
		filepath.Join(index, "result.json"):    420,
	} {
		if err := t.file(path, size, filepath.Dir(path)); err != nil {
			return err
		}
	}
	return t.note(3)
}

// run does n trials, numbered from the first, slots at a time.
func (t *bare) run(b *testing.B, first, n, slots int) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range slots {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := t.trial(first + i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func newBare(b *testing.B, iso isolation) *bare {
	b.Helper()
	t := &bare{dir: benchDir(b)}
	var err error
	if t.journal, err = os.Create(filepath.Join(t.dir, "journal")); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { t.journal.Close() })
	if iso.same {
		t.children = isolatedChildren(b, t.dir, iso)
	} else {
		t.children = plainChildren(t.dir, &syscall.SysProcAttr{Setpgid: true, Cloneflags: iso.flags})
	}
	return t
}

// BenchmarkBareTrial is what a trial can't do without; see [bare].
func BenchmarkBareTrial(b *testing.B) {
	for _, iso := range isolations {
		for _, slots := range slotCounts {
			b.Run(fmt.Sprintf("path=bare/isolation=%s/slots=%d", iso.name, slots), func(b *testing.B) {
				t := newBare(b, iso)
				b.ResetTimer()
				start := time.Now()
				t.run(b, 0, b.N, slots)
				b.StopTimer()
				b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "trials/s")
			})
		}
	}
}
