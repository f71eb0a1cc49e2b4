// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// exhausted tells which limit a program that failed has run into, if that can be proven:
// an exit code of 137 alone proves nothing. Whether the disk is full is seen where the
// engine runs on this machine and lets us look.
func (s *Sandbox) exhausted(c *command, room *pidsRoom) string {
	limits := s.spec.Resources
	if limits.Memory > 0 {
		// The engine tells of the kill before it tells of the command's end.
		t := time.NewTimer(2 * time.Second)
		defer t.Stop()
		select {
		case <-c.dead:
		case <-t.C: // the events don't come: then nothing is proven
		}
		if s.rt.watch.sawOOM(c) {
			return runtime.OutOfMemory
		}
	}
	if limits.Disk > 0 {
		s.mu.Lock()
		pid := s.pid
		s.mu.Unlock()
		if fullHere(pid, s.box.ID, s.box.Workdir) {
			return runtime.OutOfDisk
		}
	}
	if room.ranOut() {
		return runtime.OutOfPids
	}
	return ""
}

// pidsRoom counts how often the kernel refused the container a process. The engine doesn't
// tell, so it is read from the container's control group where the engine runs on this
// machine and its files can be read.
type pidsRoom struct {
	file   string
	before int
}

// room looks before a command; nil where there is no limit, or no such file.
func (s *Sandbox) room() *pidsRoom {
	s.mu.Lock()
	dir := s.group
	s.mu.Unlock()
	if dir == "" {
		return nil
	}
	r := &pidsRoom{file: filepath.Join(dir, "pids.events")}
	n, ok := r.count()
	if !ok {
		return nil
	}
	r.before = n
	return r
}

func (r *pidsRoom) ranOut() bool {
	if r == nil {
		return false
	}
	n, ok := r.count()
	return ok && n > r.before
}

func (r *pidsRoom) count() (int, bool) {
	data, err := os.ReadFile(r.file)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(data) {
		if key, value, _ := strings.Cut(strings.TrimSpace(string(line)), " "); key == "max" {
			n, err := strconv.Atoi(value)
			return n, err == nil
		}
	}
	return 0, false
}

// pidsGroup finds the directory of a container's control group for processes, by a process
// of this machine that has the container's id in its groups.
func pidsGroup(pid int, id string) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil || pid == 0 {
		return ""
	}
	for line := range bytes.Lines(data) {
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) != 3 || !strings.Contains(parts[2], id) {
			continue
		}
		if parts[0] == "0" { // version 2
			return filepath.Join("/sys/fs/cgroup", parts[2])
		}
		if parts[1] == "pids" {
			return filepath.Join("/sys/fs/cgroup/pids", parts[2])
		}
	}
	return ""
}
