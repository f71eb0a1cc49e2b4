// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestCommands(t *testing.T) {
	b := open(t, startWarden(t))
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7 << 8, "kill -9 $$": 9, "kill -15 $$": 15} {
		if r := b.run(script); r.err != nil || int(r.status.Wait) != want {
			t.Errorf("%q: status %#x, error %v, want %#x", script, int(r.status.Wait), r.err, want)
		}
	}
	if got := b.sh("pwd"); got != b.work {
		t.Errorf("pwd prints %q, want %q", got, b.work)
	}
	// A leader of a session and a group of its own.
	if got := b.sh(`set -- $(cat /proc/$$/stat); [ $$ = $5 ] && [ $$ = $6 ] && echo leads`); got != "leads" {
		t.Errorf("the command is no session leader: %q", got)
	}
	if got := b.sh(`echo "$1/$X"`, func(c *Command) {
		c.Argv, c.Env = append(c.Argv, "sh", "a b\nc"), append(c.Env, "X=$(id)")
	}); got != "a b\nc/$(id)" {
		t.Errorf("arguments and environment arrive as %q", got)
	}
	if got := b.sh(`printf %s "$1" | od -An -tx1`, func(c *Command) { c.Argv = append(c.Argv, "sh", "\xff\xfe\"") }); got != "ff fe 22" {
		t.Errorf("bytes that are no text arrive as %q", got)
	}
	// More of both than fits into one message.
	big := strings.Repeat("x", 100<<10)
	if got := b.sh(`echo ${#A} ${#B} ${#C}`, func(c *Command) { c.Env = append(c.Env, "A="+big, "B="+big, "C="+big) }); got != "102400 102400 102400" {
		t.Errorf("a big environment arrives as %q", got)
	}
}

func TestStartErrors(t *testing.T) {
	b := open(t, startWarden(t))
	b.sh("echo x >data; mkdir dir")
	for name, test := range map[string]struct {
		edit func(*Command)
		want error
	}{
		"no such program":                    {func(c *Command) { c.Argv = []string{"no-such-program"} }, fs.ErrNotExist},
		"no such file":                       {func(c *Command) { c.Argv = []string{"./nothing"} }, fs.ErrNotExist},
		"not executable":                     {func(c *Command) { c.Argv = []string{"./data"} }, fs.ErrPermission},
		"a directory":                        {func(c *Command) { c.Argv = []string{"./dir"} }, fs.ErrPermission},
		"no directory":                       {func(c *Command) { c.Dir += "/nowhere" }, fs.ErrNotExist},
		"a file for a directory":             {func(c *Command) { c.Dir += "/data" }, syscall.ENOTDIR},
		"a directory that only the host has": {func(c *Command) { c.Dir = filepath.Dir(b.root) + "/hidden" }, fs.ErrNotExist},
		"arguments without end":              {func(c *Command) { c.Argv = append(c.Argv, strings.Repeat("x", 17<<20)) }, syscall.E2BIG},
	} {
		t.Run(name, func(t *testing.T) {
			var start *StartError
			err := b.tryStart(test.edit)
			if !errors.As(err, &start) || !errors.Is(err, test.want) {
				t.Errorf("error %v (%T), want a StartError for %v", err, err, test.want)
			}
		})
	}
	b.sh(":")
}

func (b box) tryStart(edit func(*Command)) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	c := Command{Argv: []string{"sh", "-c", ":"}, Path: testPath, Dir: b.work, Files: fdsOf(null, null, null)}
	edit(&c)
	p, err := b.Start(c)
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

func TestManyCommandsAtOnce(t *testing.T) {
	b := open(t, startWarden(t))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			r := b.run(fmt.Sprintf("sleep 0.0%d; echo %d; exit %d", i%10, i, i))
			if r.err != nil || r.status.Wait.ExitStatus() != i || strings.TrimSpace(r.out) != fmt.Sprint(i) {
				t.Errorf("command %d: %+v", i, r)
			}
		})
	}
	wg.Wait()
}

func TestSignal(t *testing.T) {
	b := open(t, startWarden(t))
	p, r := b.command("trap 'echo got; exit 3' TERM; sleep 1000 >/dev/null 2>&1 & echo ready; while :; do wait; done")
	defer r.Close()
	awaitLine(t, r, "ready")
	bystander, r2 := b.command("echo ready; exec sleep 1000")
	defer r2.Close()
	awaitLine(t, r2, "ready")
	if err := p.Signal(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Wait(); err != nil || s.Wait.ExitStatus() != 3 {
		t.Errorf("status %+v, error %v, want exit 3", s, err)
	}
	if err := p.Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Errorf("a signal to one that has ended: %v", err)
	}
	// With the leader goes its group, and nobody of it is seen any more.
	crowd, r3 := b.command("for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done >/dev/null 2>&1; echo ready; wait", marked("crowd"))
	defer r3.Close()
	awaitLine(t, r3, "ready")
	if err := crowd.Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if s, err := crowd.Wait(); err != nil || s.Wait.Signal() != syscall.SIGKILL {
		t.Errorf("status %+v, error %v, want SIGKILL", s, err)
	}
	if got := b.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 1000'"); got != "1" {
		t.Errorf("%s processes are there, want the bystander", got)
	}
	if err := bystander.Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if s, err := bystander.Wait(); err != nil || s.Wait.Signal() != syscall.SIGKILL {
		t.Errorf("status %+v, error %v, want SIGKILL", s, err)
	}
}

func awaitLine(t testing.TB, r *os.File, want string) {
	t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(patience))
	defer r.SetReadDeadline(time.Time{})
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := r.Read(b); err != nil {
			t.Fatalf("waiting for %q, got %q: %v", want, line, err)
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	if string(line) != want {
		t.Fatalf("got %q, want %q", line, want)
	}
}

// TestEverybodyDies is what nests are for.
func TestEverybodyDies(t *testing.T) {
	warden := startWarden(t)
	for name, end := range map[string]func(t *testing.T, b box){
		"End": func(t *testing.T, b box) {
			if err := b.End(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"Close": func(t *testing.T, b box) { b.close() },
	} {
		t.Run(name, func(t *testing.T) {
			b, bystander := open(t, warden), open(t, warden)
			id := "dies-" + name
			if out := bystander.sh(daemons, marked(id+"-bystander")); out != "ready" {
				t.Fatal(out)
			}
			if out := b.sh(daemons, marked(id)); out != "ready" {
				t.Fatal(out)
			}
			awaitMarked(t, id, 6)
			awaitMarked(t, id+"-bystander", 6)
			running, r := b.command("echo ready; exec sleep 1000", marked(id))
			defer r.Close()
			awaitLine(t, r, "ready")
			end(t, b)
			if left := alive(id); len(left) > 0 {
				t.Errorf("alive: %v", left)
			}
			if s, err := running.Wait(); err != nil || s.Wait.Signal() != syscall.SIGKILL {
				t.Errorf("the command that ran: %+v, %v, want SIGKILL", s, err)
			}
			if len(alive(id+"-bystander")) < 6 {
				t.Errorf("of another nest are left only %v", alive(id+"-bystander"))
			}
			if name == "End" {
				before := b.sh("echo $$")
				if err := b.End(t.Context()); err != nil {
					t.Errorf("End with nobody there: %v", err)
				}
				if after := b.sh("echo $$"); after == before {
					t.Error("process ids start again: a file with one would name somebody else")
				}
			}
		})
	}
}

func TestForkBombDies(t *testing.T) {
	warden := startWarden(t)
	needs(t, warden, "pids")
	b := open(t, warden, func(s *Spec) { s.Pids = 60 })
	r := b.run(`echo begin; f() { f | f & f; }; (f) >/dev/null 2>&1 & sleep 0.2; ls -d /proc/[0-9]* | wc -l; exit 0`, marked("bomb"))
	if n := len(alive("bomb")); n > 60 {
		t.Errorf("%d processes, the limit is 60", n)
	}
	if !r.status.Pids {
		t.Errorf("the limit was not reported: %+v", r)
	}
	if err := b.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := alive("bomb"); len(left) > 0 {
		t.Errorf("alive: %d", len(left))
	}
	if r := b.run("exit 5"); r.status.Wait.ExitStatus() != 5 || r.status.Pids {
		t.Errorf("afterwards: %+v", r)
	}
}

func needs(t *testing.T, warden *Warden, limit string) {
	t.Helper()
	why := map[string]string{"memory": warden.hello.NoMemory, "pids": warden.hello.NoPids}[limit]
	if why != "" {
		t.Skipf("this machine has no limit of %s: %s", limit, why)
	}
}

func TestSixtyFourNests(t *testing.T) {
	warden := startWarden(t)
	root := testRoot(t)
	boxes := make([]box, 64)
	var wg sync.WaitGroup
	for i := range boxes {
		wg.Go(func() {
			p := newPlace(t, root, fmt.Sprintf("box%d", i))
			n, err := warden.Open(t.Context(), p.spec(fmt.Sprintf("many%d", i)))
			if err != nil {
				t.Error(err)
				return
			}
			boxes[i] = box{t, n, p}
			boxes[i].sh("echo mine >file; setsid sh -c 'trap \"\" TERM; sleep 1000; :' >/dev/null 2>&1 &", marked(fmt.Sprint("many-", i)))
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	// Each sees itself alone, and takes its own with it.
	for i, b := range boxes {
		if got := b.sh("cat file; ls " + root + "; [ $(ls -d /proc/[0-9]* | wc -l) -le 8 ] && echo alone"); got != fmt.Sprintf("mine\nbox%d\nbox%d@side\nalone", i, i) {
			t.Errorf("nest %d sees %q", i, got)
		}
	}
	for i, b := range boxes {
		if i%2 == 0 {
			continue
		}
		wg.Go(b.close)
	}
	wg.Wait()
	for i, b := range boxes {
		left := len(alive(fmt.Sprint("many-", i)))
		if i%2 == 1 && left > 0 || i%2 == 0 && left == 0 {
			t.Errorf("nest %d: %d processes", i, left)
		}
		b.close()
	}
}

func TestWardenDies(t *testing.T) {
	warden, err := Start(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, testRoot(t), "box")
	n, err := warden.Open(t.Context(), p.spec("warden-dies"))
	if err != nil {
		t.Fatal(err)
	}
	b := box{t, n, p}
	b.sh(daemons, marked("warden-dies"))
	running, r := b.command("echo ready; exec sleep 1000", marked("warden-dies"))
	defer r.Close()
	awaitLine(t, r, "ready")
	if err := warden.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if s, err := running.Wait(); !errors.Is(err, ErrLost) {
		t.Errorf("Wait: %+v, %v, want ErrLost", s, err)
	}
	<-warden.Lost()
	for _, end := range []error{n.End(t.Context()), b.tryStart(func(*Command) {})} {
		if !errors.Is(end, ErrLost) {
			t.Errorf("error %v, want ErrLost", end)
		}
	}
	if _, err := warden.Open(t.Context(), p.spec("warden-dies")); !errors.Is(err, ErrLost) {
		t.Errorf("Open: %v, want ErrLost", err)
	}
	if err := errors.Join(n.Close(context.Background()), warden.Close()); err != nil {
		t.Error(err)
	}
	awaitNobody(t, "warden-dies")
}

// awaitMarked gives processes that were started the time to be there.
func awaitMarked(t *testing.T, id string, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(alive(id)) < n; time.Sleep(time.Millisecond) { // nobody tells
		if time.Now().After(deadline) {
			t.Fatalf("alive are only %v", alive(id))
		}
	}
}

// awaitNobody gives processes that were killed the time to be gone.
func awaitNobody(t *testing.T, id string) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(alive(id)) > 0; time.Sleep(time.Millisecond) { // nobody tells
		if time.Now().After(deadline) {
			t.Fatalf("alive: %v", alive(id))
		}
	}
}

func TestInitKilledFromOutside(t *testing.T) {
	warden := startWarden(t)
	b := open(t, warden)
	p, r := b.command("echo ready; exec sleep 1000", marked("init"))
	defer r.Close()
	awaitLine(t, r, "ready")
	init, err := b.Init()
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []Init{
		{PID: init.PID, Start: init.Start + 1, Boot: init.Boot}, {PID: init.PID, Start: init.Start, Boot: "another"}, {}, {PID: 1 << 30, Boot: init.Boot},
	} {
		if err := other.Kill(t.Context()); err != nil || b.Alive(t.Context()) != nil {
			t.Fatalf("%+v, which is somebody else: %v", other, err)
		}
	}
	if err := init.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Wait(); err != nil || s.Wait.Signal() != syscall.SIGKILL {
		t.Errorf("%+v, %v, want SIGKILL", s, err)
	}
	for what, err := range map[string]error{"End": b.End(t.Context()), "Alive": b.Alive(t.Context()), "Start": b.tryStart(func(*Command) {}), "Kill": init.Kill(t.Context())} {
		if errors.Is(err, ErrLost) != (what != "Kill") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestNoHook(t *testing.T) {
	hooked = false
	defer func() { hooked = true }()
	if _, err := Start(t.Context(), Config{}); !errors.Is(err, ErrNoHook) {
		t.Errorf("error %v, want ErrNoHook", err)
	}
}

func TestOpenCancelled(t *testing.T) {
	warden := startWarden(t)
	p := newPlace(t, testRoot(t), "box")
	reason := errors.New("the worker stops")
	for range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		go cancel(reason)
		n, err := warden.Open(ctx, p.spec("cancelled"))
		if err == nil {
			err = n.Close(t.Context())
		} else if errors.Is(err, reason) {
			err = nil
		}
		if err != nil {
			t.Error(err)
		}
	}
	nothingLeft(t, warden, "cancelled")
}

// nothingLeft waits until the warden has no nest any more, and looks around.
func nothingLeft(t *testing.T, warden *Warden, name string) {
	t.Helper()
	children := func() (n int) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", warden.cmd.Process.Pid))
		for _, task := range tasks {
			list, _ := os.ReadFile(task)
			n += len(strings.Fields(string(list)))
		}
		return n
	}
	for deadline := time.Now().Add(patience); children() > 0; time.Sleep(time.Millisecond) { // nobody tells
		if time.Now().After(deadline) {
			t.Fatalf("the warden has %d children", children())
		}
	}
	if left := groupsLeft(warden, name); len(left) > 0 {
		t.Errorf("control groups left: %v", left)
	}
}

func TestNothingIsLeft(t *testing.T) {
	warden := startWarden(t)
	root := testRoot(t)
	p := newPlace(t, root, "box")
	spec := p.spec("left")
	// Mounts where a nest makes some; elsewhere others of this machine come and go.
	mounts := func() (list []string) {
		data, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		places := slices.Concat(tmpDirs, spec.View.Hide)
		for line := range strings.Lines(string(data)) {
			point := strings.Fields(line)[4]
			if under(point, "/dev") || under(point, "/proc") || under(point, root) || slices.Contains(places, point) {
				list = append(list, line)
			}
		}
		return list
	}
	descriptors := func() int {
		list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", warden.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	spec.Disk = 1 << 20
	if warden.hello.NoMemory == "" {
		spec.Memory = 64 << 20
	}
	if warden.hello.NoPids == "" {
		spec.Pids = 64
	}
	use := func() {
		n, err := warden.Open(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		b := box{t, n, p}
		b.sh("echo x >x", func(c *Command) { c.OpenFiles = 100 })
		_ = b.tryStart(func(c *Command) { c.Argv = []string{"nothing"} })
		if err := n.End(t.Context()); err != nil {
			t.Error(err)
		}
		b.close()
	}
	use() // builds the view
	before, had := mounts(), descriptors()
	for range 30 {
		use()
	}
	if after := mounts(); !slices.Equal(after, before) {
		t.Errorf("mounts before:\n%s\nand after:\n%s", before, after)
	}
	nothingLeft(t, warden, "left")
	if has := descriptors(); has > had+2 {
		t.Errorf("the warden had %d descriptors, and has %d", had, has)
	}
	if entries, err := os.ReadDir(p.work); err != nil || len(entries) > 0 {
		t.Errorf("a disk that is in memory left %v on the host's, error %v", entries, err)
	}
}
