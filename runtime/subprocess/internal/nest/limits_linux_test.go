// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMemory(t *testing.T) {
	warden := startWarden(t)
	needs(t, warden, "memory")
	b := open(t, warden, func(s *Spec) { s.Memory = 32 << 20 })
	const hog = `x=$(head -c 200000000 /dev/zero | tr '\0' x); echo ${#x}; exit 1`
	if r := b.run(hog); !r.status.OOM || r.status.Wait == 0 {
		t.Errorf("a program that takes 200 MB of 32: %+v", r)
	}
	if r := b.run("exit 9"); r.err != nil || r.status.OOM || r.status.Wait.ExitStatus() != 9 {
		t.Errorf("the next one: %+v", r)
	}
	// The same is fine without a limit.
	if r := open(t, warden, func(s *Spec) { s.Name += "2" }).run(hog); !strings.HasPrefix(r.out, "200000000") || r.status.OOM {
		t.Errorf("without a limit: %+v", r)
	}
}

func TestDisk(t *testing.T) {
	warden := startWarden(t)
	b := open(t, warden, func(s *Spec) { s.Disk = 1 << 20 })
	for _, where := range []string{"big", "/tmp/big", "$PWD@side/in/big"} {
		if r := b.run("head -c 3000000 /dev/zero >" + where + " && exit 0; exit 4"); !r.status.Full || r.status.Wait.ExitStatus() != 4 {
			t.Errorf("%s: 3 MB on a disk of 1: %+v", where, r)
		}
		b.sh("rm " + where)
	}
	if r := b.run("i=0; while [ $i -lt 5000 ] && : >f$i; do i=$((i+1)); done; [ $i = 5000 ]"); r.status.Wait == 0 {
		t.Errorf("files without end: %+v", r)
	}
	b.sh("rm f*; echo fits >small; mkdir d; echo too >d/x")
	// The worker sees it by the descriptors alone.
	work := b.Dirs()[0]
	fd, err := unix.Openat(int(work.Fd()), "small", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "small")
	defer f.Close()
	data := make([]byte, 10)
	if n, _ := f.Read(data); string(data[:n]) != "fits\n" {
		t.Errorf("the worker reads %q", data[:n])
	}
	if entries, err := os.ReadDir(b.work); err != nil || len(entries) > 0 {
		t.Errorf("on the host are %v, error %v", entries, err)
	}
}

func TestRlimits(t *testing.T) {
	b := open(t, startWarden(t))
	limited := func(c *Command) { c.OpenFiles, c.FileSize = 20, 1<<20 }
	if got := b.sh("ulimit -n; ulimit -Hn; ulimit -c", limited); got != "20\n20\n0" {
		t.Errorf("limits %q", got)
	}
	if r := b.run("ulimit -Hn 50; exit $?", limited); r.status.Wait == 0 {
		t.Errorf("the limit can be raised: %+v", r)
	}
	if r := b.run("head -c 3000000 /dev/zero >big", limited); r.status.Wait == 0 {
		t.Errorf("a file larger than the limit: %+v", r)
	}
	if r := b.run("exec head -c 3000000 /dev/zero >big", limited); r.status.Wait.Signal() != syscall.SIGXFSZ {
		t.Errorf("a file larger than the limit: %+v, want SIGXFSZ", r)
	}
	if got := b.sh("ulimit -n"); got == "20" {
		t.Error("the limit of one command is another one's")
	}
	// Limits are set while the program is stopped; it has to run afterwards like any.
	for range 20 {
		if got := b.sh("sleep 0.001; echo done", limited); got != "done" {
			t.Errorf("a command with limits prints %q", got)
		}
	}
}

func TestLimitsThatCantBeHad(t *testing.T) {
	g := pickGroups(ownGroups{}, "")
	for want, spec := range map[string]Spec{"memory": {Memory: 1}, "pids": {Pids: 1}} {
		_, err := g.make(spec)
		var limit *LimitError
		if !errors.As(err, &limit) || limit.Limit != want || limit.Reason == "" {
			t.Errorf("%s: error %v, want a LimitError with a reason", want, err)
		}
		if back := fromWire(toWire(err)); !errors.As(back, &limit) || limit.Error() != err.Error() {
			t.Errorf("%s: over the wire it becomes %v (%T)", want, back, back)
		}
	}
	if made, err := g.make(Spec{}); made != nil || err != nil {
		t.Errorf("without limits: %+v, %v", made, err)
	}
}
