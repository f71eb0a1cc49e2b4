// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	patience = time.Minute
	testPath = "/usr/local/bin:/usr/bin:/bin"
)

func startWarden(t testing.TB) *Warden {
	t.Helper()
	warden, err := Start(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := warden.Close(); err != nil {
			t.Error(err)
		}
	})
	return warden
}

// place is a directory of sandboxes with one sandbox in it, as a runtime makes it.
type place struct{ root, work, side, tmp string }

func newPlace(t testing.TB, root, name string) place {
	t.Helper()
	p := place{root: root, work: filepath.Join(root, name), side: filepath.Join(root, name+"@side", "in")}
	p.tmp = filepath.Join(p.side, "tmp")
	for _, dir := range []string{p.work, p.tmp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func testRoot(t testing.TB) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "data", "sandboxes")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// spec is what most tests want: everything hidden.
func (p place) spec(name string) Spec {
	return Spec{
		Name: name, Dirs: []string{p.work, p.side}, Tmp: p.tmp, Offline: true,
		View: &View{Root: p.root, Hide: append(DefaultHide(), filepath.Dir(p.root))},
	}
}

type box struct {
	testing.TB
	*Nest
	place
}

func open(t testing.TB, warden *Warden, edit ...func(*Spec)) box {
	t.Helper()
	p := newPlace(t, testRoot(t), "box")
	return openAt(t, warden, p, edit...)
}

func openAt(t testing.TB, warden *Warden, p place, edit ...func(*Spec)) box {
	t.Helper()
	spec := p.spec("test-" + strings.ReplaceAll(t.Name(), "/", "-"))
	for _, e := range edit {
		e(&spec)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n, err := warden.Open(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	b := box{t, n, p}
	t.Cleanup(b.close)
	return b
}

func (b box) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		b.Errorf("close: %v", err)
	}
}

type run struct {
	out    string
	status Status
	err    error
}

func fdsOf(files ...*os.File) (fds [3]int) {
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	return fds
}

// command starts a shell script and returns where its output comes from.
func (b box) command(script string, edit ...func(*Command)) (*Process, *os.File) {
	b.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	defer w.Close()
	c := Command{
		Argv: []string{"sh", "-c", script}, Path: testPath, Dir: b.work,
		Env: []string{"PATH=" + testPath}, Files: fdsOf(null, w, w),
	}
	for _, e := range edit {
		e(&c)
	}
	p, err := b.Start(c)
	if err != nil {
		r.Close()
		b.Fatal(err)
	}
	return p, r
}

func (b box) run(script string, edit ...func(*Command)) run {
	b.Helper()
	p, r := b.command(script, edit...)
	defer r.Close()
	status, err := p.Wait()
	_ = r.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // a child may hold it
	out, readErr := io.ReadAll(r)
	if readErr != nil && !errors.Is(readErr, os.ErrDeadlineExceeded) {
		b.Fatal(readErr)
	}
	return run{string(out), status, err}
}

// sh is a script that has to succeed.
func (b box) sh(script string, edit ...func(*Command)) string {
	b.Helper()
	r := b.run(script, edit...)
	if r.err != nil || r.status.Wait != 0 {
		b.Fatalf("sh -c %q: status %#x, error %v, output %q", script, int(r.status.Wait), r.err, r.out)
	}
	return strings.TrimSpace(r.out)
}

// mark is an environment variable by which the host finds a test's processes.
const mark = "NEST_TEST_MARK"

func marked(value string) func(*Command) {
	return func(c *Command) { c.Env = append(c.Env, mark+"="+value) }
}

// alive lists the living processes that carry a mark, as the host sees them.
func alive(value string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && strings.Contains(string(environ)+"\x00", mark+"="+value+"\x00") {
			cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

// daemons leaves behind what is hard to kill, prints "ready" when all of it runs, and
// ends.
const daemons = `
trap "" TERM HUP INT
sleep 1000 >/dev/null 2>&1 &
setsid sleep 1000 >/dev/null 2>&1 &
nohup setsid sh -c 'trap "" TERM HUP INT; (setsid sleep 1000 &) ; exec sleep 1000' >/dev/null 2>&1 </dev/null &
(cd /; (setsid sh -c 'cd /; sleep 1000; :' >/dev/null 2>&1 &) &)
(setsid sh -c 'while :; do sleep 0.01; done' >/dev/null 2>&1 &)
while [ $(ls -d /proc/[0-9]* 2>/dev/null | wc -l) -lt 8 ]; do :; done
echo ready
`

// groupsLeft lists the control groups of nests whose name has this prefix.
func groupsLeft(warden *Warden, prefix string) []string {
	var left []string
	for _, parent := range warden.hello.Groups {
		found, _ := filepath.Glob(groupDir(parent, prefix) + "*")
		left = append(left, found...)
	}
	return left
}
