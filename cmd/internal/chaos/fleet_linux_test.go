// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// member is a place in the fleet: a directory, the ways to the servers, a clock. Workers
// follow each other in it.
type member struct {
	n      int
	dir    string // of the work
	clock  string // file with the offset
	links  []*link
	disk   *smallDisk // where the directory has one of its own
	now    *worker    // nil while nobody is there
	next   time.Time  // when another may be started
	born   int
	befall string // the fault that has it now
}

// free reports whether a fault may befall the member.
func (m *member) free() bool {
	return m.befall == "" && m.now != nil && m.now.named() != "" && !m.now.killed && !m.now.asked
}

func (m *member) setLinks(s linkState) {
	for _, l := range m.links {
		l.set(s)
	}
}

// setClock replaces the file, which a process may read at any moment.
func (m *member) setClock(off time.Duration) error {
	next := m.clock + ".new"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%d\n", int64(off/time.Second)), 0o600); err != nil {
		return err
	}
	return os.Rename(next, m.clock)
}

// worker is a process of tidemill worker.
type worker struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}

	mu   sync.Mutex
	name string // as it is in claims, once it has begun
	err  error

	killed bool // by us
	asked  bool // to stop, by us
}

// named is the worker's name, or "" before it has begun.
func (w *worker) named() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.name
}

func (w *worker) gone() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// exit says how it ended.
func (w *worker) exit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// startWorker starts the next worker of a member. Its standard error goes to a file.
func (r *rig) startWorker(m *member) (*worker, error) {
	m.born++
	var urls []string
	for _, l := range m.links {
		urls = append(urls, "nats://"+l.address())
	}
	args := append([]string{
		"worker", "--queue", strings.Join(urls, ","), "--store", r.s3.URL(r.prefix, r.tap.url), "--work-dir", m.dir,
		"--slots", fmt.Sprint(r.slots), "--drain-timeout", "500ms", "--log-level", "info",
		"--min-free-disk", "4MiB", "--min-free-memory", "0",
	}, r.queueFlags()...)
	w := &worker{
		cmd: exec.Command(r.program, append(args, "--lease-settle", r.settle.String())...), ended: make(chan struct{}),
		log: filepath.Join(r.dir, "logs", fmt.Sprintf("worker-%d-%03d.log", m.n, m.born)),
	}
	w.cmd.Env = append(r.env(), clockVariable+"="+m.clock)
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	file, err := os.Create(w.log)
	if err != nil {
		return nil, err
	}
	stderr, err := w.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := m.setClock(0); err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		w.read(io.TeeReader(stderr, file))
		err := w.cmd.Wait()
		_ = file.Close()
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
		close(w.ended)
	}()
	return w, nil
}

// read looks for the line that has the name, and reads on to the end.
func (w *worker) read(stderr io.Reader) {
	lines := bufio.NewReader(stderr)
	for {
		text, err := lines.ReadBytes('\n')
		var line struct {
			Worker  string `json:"worker"`
			Message string `json:"message"`
		}
		if json.Unmarshal(text, &line) == nil && line.Message == "worker begins" {
			w.mu.Lock()
			w.name = line.Worker
			w.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// signal tells the process, if it is still there.
func (w *worker) signal(sig syscall.Signal) { _ = w.cmd.Process.Signal(sig) }

// tail is the end of a worker's log.
func (w *worker) tail() string {
	body, _ := os.ReadFile(w.log)
	if len(body) > 1500 {
		body = body[len(body)-1500:]
	}
	return string(body)
}

// smallDisk is a file system of its own, small enough to be filled.
type smallDisk struct{ at string }

// smallDiskBytes holds a few trials, and no more.
const smallDiskBytes = 48 << 20

// mountSmall makes one. It fails where nobody lets us mount.
func mountSmall(at string) (*smallDisk, error) {
	if err := os.MkdirAll(at, 0o700); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tidemill-chaos", at, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", smallDiskBytes)); err != nil {
		return nil, fmt.Errorf("mount a tmpfs at %s: %w", at, err)
	}
	return &smallDisk{at}, nil
}

func (d *smallDisk) ballast() string { return filepath.Join(d.at, "ballast") }

// fill takes all that is free.
func (d *smallDisk) fill() error {
	f, err := os.Create(d.ballast())
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2 // what is left is smaller
		}
	}
	return nil
}

func (d *smallDisk) empty() error { return os.Remove(d.ballast()) }

func (d *smallDisk) unmount() { _ = syscall.Unmount(d.at, syscall.MNT_DETACH) }
