// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

var (
	rssTrials = flag.Int("rss.trials", 10_000, "trials of each iteration of BenchmarkPeakRSS")
	rssSlots  = flag.Int("rss.slots", 64, "slots in BenchmarkPeakRSS")
)

// BenchmarkPeakRSS runs many trials of two sh -c children each in a process of the real
// binary, and reports how much memory that process had resident at most, and the warden of
// its sandboxes. process=worker is tidemill worker, with queue and producer elsewhere;
// process=run is tidemill run, which is all of it in one. An iteration is one process.
func BenchmarkPeakRSS(b *testing.B) {
	program := buildTidemill(b)
	for _, name := range []string{"worker", "run"} {
		start := startWorker
		if name == "run" {
			start = startRun
		}
		b.Run(fmt.Sprintf("process=%s/slots=%d", name, *rssSlots), func(b *testing.B) {
			var all, wardens, rates []float64
			for range b.N {
				p := start(b, program)
				b.StartTimer()
				took := p.awaitCommitted(b, *rssTrials)
				b.StopTimer()
				p.finish(b)
				all = append(all, float64(p.peak)/1e6)
				wardens = append(wardens, float64(p.wardenPeak)/1e6)
				rates = append(rates, float64(*rssTrials)/took.Seconds())
			}
			b.ReportMetric(median(all), "rss-MB")
			b.ReportMetric(median(wardens), "warden-rss-MB")
			b.ReportMetric(median(rates), "trials/s")
		})
	}
}

// buildTidemill builds the program as it is in the tree.
func buildTidemill(b *testing.B) string {
	b.Helper()
	tool, err := exec.LookPath("go")
	if err != nil {
		b.Skip("there is no go command to build the tidemill binary with")
	}
	program := filepath.Join(benchDir(b), "tidemill")
	if out, err := exec.Command(tool, "build", "-o", program, "github.com/tidemill/tidemill/cmd/tidemill").CombinedOutput(); err != nil {
		b.Fatalf("build tidemill: %v\n%s", err, out)
	}
	return program
}

// startRun has one process do it all.
func startRun(b *testing.B, program string) *process {
	b.StopTimer()
	r := &rig{dir: benchDir(b)}
	file := r.runFile(b, *rssTrials, isolation{option: "auto", policy: "full_internet"})
	return startProcess(b, program, "run", "--data", filepath.Join(r.dir, "data"), "--slots", strconv.Itoa(*rssSlots), file)
}

// startWorker enqueues the trials on a server of this process, and starts a worker for
// them.
func startWorker(b *testing.B, program string) *process {
	b.StopTimer()
	r := &rig{dir: benchDir(b)}
	dir := filepath.Join(r.dir, "store")
	store, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	r.store = store
	if r.id, err = bundle.OpenIdentity(b.Context(), store); err != nil {
		b.Fatal(err)
	}
	srv, err := embedded.Start(b.Context(), embedded.Config{Dir: filepath.Join(r.dir, "queue"), Listen: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(srv.Shutdown)
	r.queue, err = natsqueue.Dial(b.Context(), srv.ClientURL(), natsqueue.Config{Store: r.id.StoreUUID})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.queue.Close() })
	r.submit(b, r.runFile(b, *rssTrials, isolation{option: "auto", policy: "full_internet"}))
	return startProcess(b, program, "worker", "--queue", srv.ClientURL(), "--store", dir,
		"--work-dir", filepath.Join(r.dir, "work"), "--slots", strconv.Itoa(*rssSlots))
}

// process is a tidemill that runs, and what it took so far.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	stderr  io.Reader

	unwatch          func() // returns when nobody watches any more
	peak, wardenPeak int64  // bytes
}

func startProcess(b *testing.B, program string, args ...string) *process {
	b.Helper()
	p := &process{cmd: exec.Command(program, args...), started: time.Now()}
	var err error
	if p.stderr, err = p.cmd.StderrPipe(); err != nil {
		b.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	var watching sync.WaitGroup
	stop := make(chan struct{})
	watching.Go(func() { p.watch(stop) })
	p.unwatch = sync.OnceFunc(func() {
		close(stop)
		watching.Wait()
	})
	b.Cleanup(func() {
		p.unwatch()
		if p.cmd.ProcessState == nil { // the benchmark failed
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

// awaitCommitted reads what the process says until n trials are committed, and returns how
// long that took since its start.
func (p *process) awaitCommitted(b *testing.B, n int) time.Duration {
	b.Helper()
	lines := bufio.NewScanner(p.stderr)
	for done := 0; lines.Scan(); {
		var line struct {
			Event  string `json:"event"`
			Passed bool   `json:"passed"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Event != "committed" {
			continue
		}
		if !line.Passed {
			b.Fatalf("a trial ended otherwise than it should: %s", lines.Text())
		}
		if done++; done == n {
			return time.Since(p.started)
		}
	}
	b.Fatalf("the process ended before %d trials were committed: %v", n, lines.Err())
	return 0
}

// finish ends a worker; run ends by itself.
func (p *process) finish(b *testing.B) {
	b.Helper()
	if p.cmd.Args[1] == "worker" {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
	}
	_, _ = io.Copy(io.Discard, p.stderr) // until it has ended
	p.unwatch()
	if err := p.cmd.Wait(); err != nil {
		b.Fatalf("%v: %v", p.cmd.Args, err)
	}
	if p.peak == 0 {
		b.Fatal("the process was never seen")
	}
}

// watch notes the peaks until it is told to stop. The kernel keeps them, so that a look now
// and then is enough: what it can miss is what the last moments add.
func (p *process) watch(stop <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	warden := 0
	for {
		p.peak = max(p.peak, peakRSS(p.cmd.Process.Pid))
		if warden == 0 {
			warden = wardenOf(p.cmd.Process.Pid)
		}
		if warden != 0 {
			p.wardenPeak = max(p.wardenPeak, peakRSS(warden))
		}
		select {
		case <-tick.C:
		case <-stop:
			return
		}
	}
}

// peakRSS is the most memory that a process ever had resident, in bytes; 0 when it is
// gone. (What wait reports counts the memory of whoever started the process as well.)
func peakRSS(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		var kib int64
		if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}

// wardenOf finds the process that keeps the sandboxes of a worker; 0 when there is none,
// as where the kernel allows no namespaces.
func wardenOf(worker int) int {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", worker))
	if err != nil {
		return 0
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if errors.Is(err, os.ErrNotExist) {
			continue // a thread that ended
		}
		for child := range strings.FieldsSeq(string(children)) {
			name, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if pid, err := strconv.Atoi(child); err == nil && strings.HasPrefix(string(name), "tidemill-warden") {
				return pid
			}
		}
	}
	return 0
}
