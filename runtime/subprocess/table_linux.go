// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// table is the process table of the machine, as far as /proc shows it.
//
// Looking at every process costs as much as starting a few, and it is done for each
// trial. So the table remembers processes that belong to no sandbox: the inode number
// of /proc/<pid> stays with the process and comes with the listing of /proc. A process
// that carries no mark can't get one later, for only descendants of commands have
// marks to give. (It could still move into a sandbox's directory; then it is not of
// ours.)
type table struct {
	root string
	uid  uint32
	self int
	own  []byte // this process's environment, also that of children before their exec

	mu      sync.Mutex
	foreign map[int]stranger
	looks   int
	buf     []byte // environments
	listing []byte
}

// stranger is a process that belongs to no sandbox.
type stranger struct {
	inode uint64
	seen  int // the last look that saw it
}

// errNoProc means that there is nothing to look at.
var errNoProc = errors.New("/proc can't be read")

func newReaper(root string, timeout time.Duration) *reaper {
	own, _ := os.ReadFile("/proc/self/environ")
	return &reaper{timeout: timeout, table: &table{
		root: root, uid: uint32(os.Geteuid()), self: os.Getpid(), own: own,
		foreign: map[int]stranger{}, buf: make([]byte, 64<<10), listing: make([]byte, 32<<10),
	}}
}

// find returns the living processes that are known by q or are members of the groups,
// this process left out.
func (t *table) find(q quarry, groups []int) ([]*prey, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	proc, err := openDir("/proc")
	if err != nil {
		return nil, errors.Join(errNoProc, err)
	}
	defer proc.Close()
	var found []*prey
	t.looks++
	seen := 0
	see := func(pid int, inode uint64) {
		seen++
		t.foreign[pid] = stranger{inode, t.looks}
	}
	err = t.each(proc, func(pid int, inode uint64) {
		if known, ok := t.foreign[pid]; ok && known.inode == inode && len(groups) == 0 {
			see(pid, inode)
			return
		}
		ours, foreign := t.look(proc, pid, q, groups)
		switch {
		case ours:
			if p := t.catch(proc, pid, q, groups); p != nil {
				found = append(found, p)
			}
		case foreign:
			see(pid, inode)
		}
	})
	if err != nil || seen < len(t.foreign) {
		maps.DeleteFunc(t.foreign, func(_ int, s stranger) bool { return s.seen != t.looks })
	}
	return found, err
}

// each goes through the listing of /proc. The standard library doesn't hand out the
// inode numbers that are in it.
func (t *table) each(proc *directory, do func(pid int, inode uint64)) error {
	const header = 8 + 8 + 2 + 1 // inode, offset, length of the record, type
	for {
		n, err := unix.Getdents(proc.fd, t.listing)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return errors.Join(errNoProc, err)
		}
		if n <= 0 {
			return nil
		}
		for rest := t.listing[:n]; len(rest) > header; {
			length := int(binary.NativeEndian.Uint16(rest[16:]))
			if length <= header || length > len(rest) {
				return fmt.Errorf("%w: a record of %d bytes", errNoProc, length)
			}
			name, _, _ := bytes.Cut(rest[header:length], []byte{0})
			if pid, ok := parsePID(name); ok && pid != t.self && pid != 1 {
				do(pid, binary.NativeEndian.Uint64(rest))
			}
			rest = rest[length:]
		}
	}
}

// parsePID parses the name of a process's directory. Much else is in /proc too, and to make
// an error of each such name would be most of the work.
func parsePID(name []byte) (pid int, ok bool) {
	for _, c := range name {
		if c < '0' || c > '9' || pid > 1<<30 {
			return 0, false
		}
		pid = 10*pid + int(c-'0')
	}
	return pid, len(name) > 0
}

// look tells whether a process is ours, or belongs to no sandbox for sure. A zombie is
// neither: it has no environment and no directory any more.
func (t *table) look(proc *directory, pid int, q quarry, groups []int) (ours, foreign bool) {
	dir := strconv.Itoa(pid)
	environ, readable := t.environ(proc, dir)
	if hasEntry(environ, q.mark) {
		return true, false
	}
	cwd, _ := readlinkAt(proc, dir+"/cwd")
	cwd = strings.TrimSuffix(cwd, " (deleted)")
	inside := func(top string) bool { return cwd == top || strings.HasPrefix(cwd, top+"/") }
	if slices.ContainsFunc(q.dirs, inside) || len(groups) > 0 {
		st, ok := t.stat(proc, dir)
		switch {
		case !ok || st.state == 'Z' || st.state == 'X':
		case slices.Contains(groups, st.group):
			return true, false
		case slices.ContainsFunc(q.dirs, inside) && st.terminal == 0 && st.uid == t.uid:
			// With a terminal it would be a person who looks around.
			return true, false
		}
	}
	if bytes.Equal(environ, t.own) || hasEntry(environ, markVar+"=") || inside(t.root) {
		return false, false
	}
	if readable && len(environ) > 0 {
		return false, true
	}
	// A kernel thread or a zombie has no program. Others have an environment that is
	// empty, or is none of our business now, which may change.
	_, err := readlinkAt(proc, dir+"/exe")
	return false, errors.Is(err, fs.ErrNotExist)
}

// environ returns the environment that a program was started with.
func (t *table) environ(proc *directory, dir string) ([]byte, bool) {
	fd, err := openat(proc, dir+"/environ", unix.O_RDONLY, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	n := 0
	for {
		if n == len(t.buf) {
			t.buf = append(t.buf, make([]byte, len(t.buf))...)
		}
		m, err := unix.Read(fd, t.buf[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || m <= 0 {
			return t.buf[:n], err == nil
		}
		n += m
	}
}

func hasEntry(environ []byte, prefix string) bool {
	for rest := environ; len(rest) > 0; {
		i := bytes.Index(rest, []byte(prefix))
		if i < 0 {
			return false
		}
		if i == 0 && len(rest) == len(environ) || i > 0 && rest[i-1] == 0 {
			return true
		}
		rest = rest[i+1:]
	}
	return false
}

type procStat struct {
	state    byte
	group    int
	terminal int
	uid      uint32
}

// stat reads what /proc says about a process. The name of the program is in
// parentheses and may hold some itself.
func (t *table) stat(proc *directory, dir string) (procStat, bool) {
	fd, err := openat(proc, dir+"/stat", unix.O_RDONLY, 0)
	if err != nil {
		return procStat{}, false
	}
	defer unix.Close(fd)
	data := make([]byte, 1024) // the fields that are wanted come first
	n, err := descriptor(fd).Read(data)
	if err != nil {
		return procStat{}, false
	}
	data = data[:n]
	info, err := statAt(proc, dir)
	if err != nil {
		return procStat{}, false
	}
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(f) < 5 || len(f[0]) != 1 {
		return procStat{}, false
	}
	group, err1 := strconv.Atoi(f[2])
	terminal, err2 := strconv.Atoi(f[4])
	return procStat{f[0][0], group, terminal, info.Uid}, err1 == nil && err2 == nil
}

// catch holds on to a process and looks at it again: what is held now and is ours now
// is what will be killed, even if the number is given to another process meanwhile.
func (t *table) catch(proc *directory, pid int, q quarry, groups []int) *prey {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		return &prey{pid: pid, fd: -1}
	}
	if err != nil {
		return nil
	}
	if ours, _ := t.look(proc, pid, q, groups); !ours {
		unix.Close(fd)
		return nil
	}
	return &prey{pid: pid, fd: fd}
}
