// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// groups is where control groups can be made.
type groups struct {
	v1     map[string]string // by controller: the worker's own group
	v2     string            // where groups with both controllers can be made
	reason map[string]string // by controller: why there is none
}

var controllers = []string{"memory", "pids"}

// findGroups looks what there is. Given is a group of version 2 to use.
func findGroups(given string) groups {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil {
		var own []byte
		if own, err = os.ReadFile("/proc/self/cgroup"); err == nil {
			return pickGroups(parseGroups(string(mountinfo), string(own)), given)
		}
	}
	g := groups{reason: map[string]string{}}
	for _, c := range controllers {
		g.reason[c] = err.Error()
	}
	return g
}

// ownGroups are the directories of the groups that this process is in.
type ownGroups struct {
	v1 map[string]string // by controller
	v2 string
}

// parseGroups reads /proc/self/mountinfo and /proc/self/cgroup. A hierarchy may be
// mounted from a group below its root, as in containers.
func parseGroups(mountinfo, cgroup string) ownGroups {
	own := ownGroups{v1: map[string]string{}}
	paths := map[string]string{} // by controller, "" for version 2
	for line := range strings.Lines(cgroup) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		for name := range strings.SplitSeq(f[1], ",") {
			paths[name] = f[2]
		}
	}
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(g) < 3 {
			continue
		}
		dir := func(path string) (string, bool) {
			rel, err := filepath.Rel(f[3], path)
			return filepath.Join(f[4], rel), err == nil && filepath.IsLocal(rel)
		}
		switch g[0] {
		case "cgroup2":
			if path, ok := paths[""]; ok {
				if d, ok := dir(path); ok {
					own.v2 = d
				}
			}
		case "cgroup":
			for name := range strings.SplitSeq(g[2], ",") {
				if path, ok := paths[name]; ok && slices.Contains(controllers, name) {
					if d, ok := dir(path); ok {
						own.v1[name] = d
					}
				}
			}
		}
	}
	return own
}

// pickGroups keeps what can be used: of version 1 the own group, in which everybody
// may make others; of version 2 the group that was given, or the own one, or its
// parent, whichever takes both controllers for its children. One with processes in it
// doesn't, by the kernel's rules.
func pickGroups(own ownGroups, given string) groups {
	g := groups{v1: map[string]string{}, reason: map[string]string{}}
	for _, c := range controllers {
		dir, ok := own.v1[c]
		if !ok {
			g.reason[c] = "there is no control group hierarchy with the controller " + c
		} else if err := unix.Access(dir, unix.W_OK); err != nil {
			g.reason[c] = dir + ": " + err.Error()
		} else {
			g.v1[c] = dir
		}
	}
	candidates := []string{given}
	if given == "" && own.v2 != "" {
		candidates = []string{own.v2, filepath.Dir(own.v2)}
	}
	for _, dir := range candidates {
		if dir == "" || len(g.v1) == len(controllers) && given == "" {
			continue
		}
		err := enable(dir)
		if err == nil {
			g.v2, g.v1, g.reason = dir, nil, map[string]string{}
			return g
		}
		for _, c := range controllers {
			if g.v1[c] == "" && own.v1[c] == "" {
				g.reason[c] = err.Error() + "; a service manager hands such a group over with Delegate=yes"
			}
		}
	}
	return g
}

// enable lets children of a group of version 2 have both controllers.
func enable(dir string) error {
	missing := func(file string) []string {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return controllers
		}
		has := strings.Fields(string(data))
		return slices.DeleteFunc(slices.Clone(controllers), func(c string) bool { return slices.Contains(has, c) })
	}
	if m := missing("cgroup.controllers"); len(m) > 0 {
		return fmt.Errorf("%s doesn't have %s", dir, strings.Join(m, ", "))
	}
	if m := missing("cgroup.subtree_control"); len(m) > 0 {
		want := "+" + strings.Join(m, " +")
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(want), 0); err != nil {
			return fmt.Errorf("%s can't give %s to its children: %w", dir, strings.Join(m, ", "), err)
		}
	}
	return unix.Access(dir, unix.W_OK)
}

func (g groups) hello() *hello {
	h := &hello{NoMemory: g.reason["memory"], NoPids: g.reason["pids"]}
	if g.v2 != "" {
		h.Groups = []string{g.v2}
		return h
	}
	for _, c := range controllers {
		if dir := g.v1[c]; dir != "" && !slices.Contains(h.Groups, dir) {
			h.Groups = append(h.Groups, dir)
		}
	}
	return h
}

const groupPrefix = "tidemill-"

func groupDir(parent, name string) string { return filepath.Join(parent, groupPrefix+name) }

// group is the control groups of one nest; nil where it has no limits.
type group struct {
	dirs    []string // of the nest
	parents []string // version 1: where its thread goes back to
	fd      int      // version 2: the group, -1 otherwise
	tids    []int    // version 1: of the nest's threads
	oom     counter
	pids    counter
}

// setting is a file of a group and what is written there.
type setting struct {
	file, value string
	optional    bool
}

// make makes the groups that a nest's limits need. In version 1 the nest's threads are in
// them as well, and counted, like init.
func (g groups) make(spec Spec) (_ *group, err error) {
	if spec.Memory == 0 && spec.Pids == 0 {
		return nil, nil
	}
	made := &group{fd: -1, oom: counter{fd: -1}, pids: counter{fd: -1}}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.remove())
		}
	}()
	asked := map[string]int64{"memory": spec.Memory, "pids": spec.Pids}
	for _, c := range controllers {
		if asked[c] > 0 && g.v2 == "" && g.v1[c] == "" {
			return nil, &LimitError{Limit: c, Reason: g.reason[c]}
		}
	}
	ours := int64(2)
	if spec.Offline && spec.AlsoOnline {
		ours++
	}
	memory, pids := strconv.FormatInt(spec.Memory, 10), strconv.FormatInt(spec.Pids+ours, 10)
	plan := map[string][]setting{}
	if g.v2 != "" {
		dir := groupDir(g.v2, spec.Name)
		pids = strconv.FormatInt(spec.Pids+1, 10)
		plan[dir] = nil
		if spec.Memory > 0 {
			plan[dir] = append(plan[dir], setting{file: "memory.max", value: memory}, setting{"memory.swap.max", "0", true})
			made.oom = counter{path: filepath.Join(dir, "memory.events"), key: "oom_kill"}
		}
		if spec.Pids > 0 {
			plan[dir] = append(plan[dir], setting{file: "pids.max", value: pids})
			made.pids = counter{path: filepath.Join(dir, "pids.events"), key: "max"}
		}
	} else {
		if spec.Memory > 0 {
			dir := groupDir(g.v1["memory"], spec.Name)
			plan[dir] = append(plan[dir], setting{file: "memory.limit_in_bytes", value: memory},
				setting{"memory.memsw.limit_in_bytes", memory, true})
			made.oom = counter{path: filepath.Join(dir, "memory.oom_control"), key: "oom_kill"}
		}
		if spec.Pids > 0 {
			dir := groupDir(g.v1["pids"], spec.Name)
			plan[dir] = append(plan[dir], setting{file: "pids.max", value: pids})
			made.pids = counter{path: filepath.Join(dir, "pids.events"), key: "max"}
		}
	}
	for dir, settings := range plan {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make control group: %w", err)
		}
		made.dirs = append(made.dirs, dir)
		for _, s := range settings {
			err := os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0)
			if err != nil && !(s.optional && errors.Is(err, fs.ErrNotExist)) {
				return nil, fmt.Errorf("set limit: %w", err)
			}
		}
		if g.v2 == "" {
			made.parents = append(made.parents, filepath.Dir(dir))
		} else if made.fd, err = unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return nil, fmt.Errorf("open control group %s: %w", dir, err)
		}
	}
	for _, c := range []*counter{&made.oom, &made.pids} {
		if err := c.open(); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// join puts this thread into the groups, so that what it starts is in them from its
// first instruction. In version 2 that is done by starting it there.
func (g *group) join() error {
	if g == nil || len(g.parents) == 0 {
		return nil
	}
	tid := unix.Gettid()
	g.tids = append(g.tids, tid)
	for _, dir := range g.dirs {
		if err := os.WriteFile(filepath.Join(dir, "tasks"), []byte(strconv.Itoa(tid)), 0); err != nil {
			return fmt.Errorf("join control group: %w", err)
		}
	}
	return nil
}

func (g *group) spawn(attr *syscall.SysProcAttr) {
	if g != nil && g.fd >= 0 {
		attr.UseCgroupFD, attr.CgroupFD = true, g.fd
	}
}

// remove removes the groups. It runs on any thread: the nest's sees the host's control
// groups read-only.
func (g *group) remove() error {
	if g == nil {
		return nil
	}
	done := make(chan error)
	go func() {
		var errs []error
		for _, tid := range g.tids {
			for _, dir := range g.parents {
				err := os.WriteFile(filepath.Join(dir, "tasks"), []byte(strconv.Itoa(tid)), 0)
				if !errors.Is(err, unix.ESRCH) { // it has ended, and with that left
					errs = append(errs, err)
				}
			}
		}
		for _, dir := range g.dirs {
			errs = append(errs, RemoveGroup(dir))
		}
		done <- errors.Join(errs...)
	}()
	err := <-done
	if g.fd >= 0 {
		unix.Close(g.fd)
	}
	g.oom.close()
	g.pids.close()
	return err
}

// RemoveGroup removes a control group of a nest that is dead. One that is not there,
// or isn't a nest's, is left alone. The last process of a group may be gone for
// everybody but the group for a moment.
func RemoveGroup(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), groupPrefix) {
		return nil
	}
	for wait := time.Millisecond; ; wait *= 2 {
		err := unix.Rmdir(dir)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
			return nil
		case !errors.Is(err, unix.EBUSY) || wait > time.Second:
			return &fs.PathError{Op: "remove control group", Path: dir, Err: err}
		}
		time.Sleep(wait)
	}
}

// counts are how often a nest ran into its limits.
type counts struct{ oom, pids int64 }

func (g *group) counts() counts {
	if g == nil {
		return counts{}
	}
	return counts{oom: g.oom.read(), pids: g.pids.read()}
}

// counter is a line of a group's file, which stays open: the nest can't see its path.
type counter struct {
	path, key string
	fd        int
}

func (c *counter) open() error {
	if c.path == "" {
		return nil
	}
	var err error
	if c.fd, err = unix.Open(c.path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		c.fd = -1
		return fmt.Errorf("open %s: %w", c.path, err)
	}
	return nil
}

func (c *counter) read() int64 {
	if c.fd < 0 {
		return 0
	}
	buf := make([]byte, 4096)
	n, err := unix.Pread(c.fd, buf, 0)
	if err != nil || n <= 0 {
		return 0
	}
	for line := range strings.Lines(string(buf[:n])) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == c.key {
			count, _ := strconv.ParseInt(value, 10, 64)
			return count
		}
	}
	return 0
}

func (c *counter) close() {
	if c.fd >= 0 {
		unix.Close(c.fd)
		c.fd = -1
	}
}
