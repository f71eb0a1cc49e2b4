// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// children are the ways in which a program can leave something behind that is still
// found.
var children = map[string]string{
	"in the group":                     `sleep 1000 & echo $!`,
	"in a session of its own":          `setsid sleep 1000 & echo $!`,
	"twice forked, elsewhere":          `(cd /; setsid sh -c 'echo $$; exec sleep 1000' &)`,
	"without our mark, in the workdir": `env -i setsid sleep 1000 & echo $!`,
	"without our mark, in the group":   `cd /; env -i sleep 1000 & echo $!`,
	"deaf to signals":                  `(trap "" TERM HUP INT; setsid sh -c 'echo $$; while :; do sleep 1000; done' &)`,
}

func TestEndProcesses(t *testing.T) {
	sb := open(t, newRuntime(t, Config{}), "xy")
	pids := map[string]string{}
	for what, script := range children {
		pids[what] = strings.TrimSpace(shLoose(t, sb, script))
		if !alivePID(t, pids[what]) {
			t.Errorf("%s: process %s is dead already", what, pids[what])
		}
	}
	if err := sb.EndProcesses(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, pid := range pids {
		if alivePID(t, pid) {
			t.Errorf("%s: process %s is alive", what, pid)
		}
	}
	if got := sh(t, sb, "echo usable"); got != "usable\n" {
		t.Errorf("afterwards it prints %q", got)
	}
	if len(sb.groups.all) > 0 && sb.groups.all[0].populated() {
		// Zombies that nobody has waited for yet keep a group; nothing else does.
		if alivePID(t, "-"+pids["in the group"]) {
			t.Error("a group is still populated")
		}
	}
}

// shLoose runs a script whose children may keep the streams.
func shLoose(t *testing.T, sb *Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"sh", "-c", script}, Stdout: &out})
	if err != nil || !exit.OK() {
		t.Fatalf("sh -c %q: exit %+v, error %v", script, exit, err)
	}
	return out.String()
}

// A timeout ends the command's own descendants, also those that left its group, and
// nobody else's.
func TestTimeoutEndsItsOwn(t *testing.T) {
	sb := open(t, newRuntime(t, Config{}), "xy")
	server := strings.TrimSpace(shLoose(t, sb, `setsid sleep 1000 & echo $!`))
	for timeout := 100 * time.Millisecond; ; timeout *= 2 {
		var out bytes.Buffer
		exit, err := sb.Exec(t.Context(), runtime.Command{
			Argv: []string{"sh", "-c", `setsid sleep 1000 & echo $!; wait`}, Stdout: &out, Timeout: timeout,
		})
		if err != nil || !exit.TimedOut || exit.Signal != "SIGKILL" || exit.Code != 137 {
			t.Fatalf("exit %+v, error %v, want it killed for its timeout", exit, err)
		}
		if out.Len() == 0 && timeout < patience {
			continue
		}
		if alivePID(t, out.String()) {
			t.Errorf("process %s, which the command started, is alive", out.String())
		}
		break
	}
	if !alivePID(t, server) {
		t.Error("what an earlier command started is dead")
	}
}

// Somebody who looks around in a workdir, at a terminal, is not killed; neither is
// anybody elsewhere.
func TestBystandersLive(t *testing.T) {
	rt := newRuntime(t, Config{})
	sb := open(t, rt, "xy")
	neighbour := open(t, rt, "x-neighbour") // its path begins with ours
	theirs := strings.TrimSpace(shLoose(t, neighbour, `env -i setsid sleep 1000 & echo $!`))

	elsewhere := exec.Command("sleep", "1000")
	elsewhere.Dir = rt.cfg.Root
	if err := elsewhere.Start(); err != nil {
		t.Fatal(err)
	}
	person := exec.Command("sleep", "1000")
	person.Dir = sb.Path(runtime.Workdir)
	tty := openTerminal(t)
	person.Stdin = tty
	person.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := person.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []*exec.Cmd{elsewhere, person} {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	for range 2 {
		if err := sb.EndProcesses(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	closeSandbox(t, sb)
	for what, pid := range map[string]int{"elsewhere": elsewhere.Process.Pid, "the person": person.Process.Pid} {
		if unix.Kill(pid, 0) != nil || !alivePID(t, itoa(pid)) {
			t.Errorf("%s was killed", what)
		}
	}
	if !alivePID(t, theirs) {
		t.Error("a process of the neighbour was killed")
	}
}

// openTerminal returns the inner end of a pseudo terminal.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { outer.Close() })
	n, err := unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	inner, err := os.OpenFile("/dev/pts/"+itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { inner.Close() })
	return inner
}

// The cache of the table rests on what /proc lists: its inode numbers are those of the
// processes' directories.
func TestListingHasInodes(t *testing.T) {
	r := newReaper(t.TempDir(), patience)
	proc, err := openDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	}()
	listed := map[int]uint64{}
	if err := r.table.each(proc, func(pid int, inode uint64) { listed[pid] = inode }); err != nil {
		t.Fatal(err)
	}
	st, err := statAt(proc, itoa(sleeper.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if got := listed[sleeper.Process.Pid]; got != st.Ino {
		t.Errorf("listed with inode %d, its directory has %d", got, st.Ino)
	}
	if _, ok := listed[os.Getpid()]; ok {
		t.Error("this process is listed")
	}
}

// A process that the table knows as foreign and one that gets its number later are not
// the same.
func TestTableSeesNewProcesses(t *testing.T) {
	rt := newRuntime(t, Config{})
	sb := open(t, rt, "xy")
	find := func() int {
		found, err := rt.claims.reap.table.find(sb.estate.quarry(rt.cfg.Root), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			p.close()
		}
		return len(found)
	}
	for want := range 4 {
		if got := find(); got != want {
			t.Errorf("%d processes found, want %d", got, want)
		}
		shLoose(t, sb, `setsid sleep 1000 >/dev/null &`)
	}
	if known := len(rt.claims.reap.table.foreign); known == 0 {
		t.Error("the table remembers nobody: every look costs as much as the first")
	}
}

func TestHasEntry(t *testing.T) {
	for _, c := range []struct {
		environ, prefix string
		want            bool
	}{
		{"", "A=1", false},
		{"A=1\x00", "A=1", true},
		{"B=2\x00A=1\x00", "A=1", true},
		{"B=2\x00A=1\x00", "A=1\x00", true},
		{"B=2\x00A=12\x00", "A=1\x00", false},
		{"AA=1\x00", "A=1", false},
		{"B=A=1\x00", "A=1", false},
		{"B=A=1\x00A=1\x00", "A=1", true},
		{"A", "A=1", false},
	} {
		if got := hasEntry([]byte(c.environ), c.prefix); got != c.want {
			t.Errorf("hasEntry(%q, %q) = %v", c.environ, c.prefix, got)
		}
	}
}
