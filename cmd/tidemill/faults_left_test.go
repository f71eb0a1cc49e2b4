// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// surroundings are what of the machine a run could leave something in.
type surroundings struct {
	mounts map[string]bool
	groups map[string]bool // control groups of sandboxes
}

// lookAround sees the machine as it is now. Where there are no such things there are none.
func lookAround(t *testing.T) surroundings {
	t.Helper()
	s := surroundings{mounts: map[string]bool{}, groups: map[string]bool{}}
	body, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		s.mounts[line] = true
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // somebody else's that went meanwhile, or that we may not see
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), "tidemill-") {
			s.groups[path] = true
		}
		return nil
	})
	return s
}

// compare fails for what is there now and wasn't, as far as it is of a data directory that
// no process works in. Other tests make and remove such things meanwhile.
func (s surroundings) compare(t *testing.T, data string) {
	t.Helper()
	now := lookAround(t)
	for line := range now.mounts {
		if !s.mounts[line] && strings.Contains(line, data) {
			t.Errorf("left behind: mount %s", line)
		}
	}
	trials, err := os.ReadDir(filepath.Join(data, "runs"))
	if err != nil {
		t.Error(err)
	}
	for _, run := range trials {
		ids, err := os.ReadDir(filepath.Join(data, "runs", run.Name(), "attempts"))
		if err != nil {
			t.Error(err)
		}
		for group := range now.groups {
			for _, id := range ids {
				if strings.Contains(group, id.Name()) {
					t.Errorf("left behind: control group %s", group)
				}
			}
		}
	}
	for _, place := range []string{"work", "worker/spool", "worker/unsent", "queue", "tmp", "socket"} {
		path := filepath.Join(data, ".tidemill", place)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if !info.IsDir() {
			t.Errorf("left behind: %s", path)
			continue
		}
		if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
			t.Errorf("left behind in %s: %v %v", path, entries, err)
		}
	}
}
