// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProbe(t *testing.T) {
	warden := startWarden(t)
	root := testRoot(t)
	r := warden.Probe(t.Context(), &View{Root: root, Hide: DefaultHide()})
	// What a machine has can differ, but not whether a nest holds what it promises.
	for what, err := range map[string]error{"nests": r.Nests, "hidden": r.Hides, "offline": r.Offline, "disk": r.Disk} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{"memory": r.Memory, "pids": r.Pids} {
		if limit := (*LimitError)(nil); err != nil && !errors.As(err, &limit) {
			t.Errorf("%s: %v, want nothing or a LimitError", what, err)
		}
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("the probe left %v, error %v", left, err)
	}
	nothingLeft(t, warden, "probe")

	// A probe that can't do its test outside says so, and doesn't praise what it saw.
	r = warden.Probe(t.Context(), &View{Root: filepath.Join(root, "nowhere"), Hide: DefaultHide()})
	for _, err := range []error{r.Nests, r.Hides, r.Offline, r.Memory, r.Pids, r.Disk} {
		if err == nil {
			t.Errorf("a probe that can't begin reports %+v", r)
		}
	}
}

func TestHostIsHidden(t *testing.T) {
	warden := startWarden(t)
	root := testRoot(t)
	data := filepath.Dir(root)
	secret := filepath.Join(data, "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := newPlace(t, root, "other")
	b := openAt(t, warden, newPlace(t, root, "box"))
	neighbour := openAt(t, warden, other, func(s *Spec) { s.Name = "neighbour" })
	neighbour.sh("echo x >own; echo y >/tmp/y; echo z >/dev/shm/z; setsid sleep 1000 >/dev/null 2>&1 &", marked("neighbour"))

	// What a plain process sees, so that the test can fail.
	for _, path := range []string{secret, other.work} {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{secret, other.work, other.side, "/tmp/y", "/dev/shm/z", "/dev/mem", "/dev/vda", "/dev/kmsg"} {
		if r := b.run("ls -d " + path); r.status.Wait == 0 {
			t.Errorf("%s can be seen", path)
		}
	}
	for _, dir := range DefaultHide() {
		if under(root, dir) || dir == "/tmp" || dir == "/var/tmp" {
			continue
		}
		if got := b.sh("ls -A " + dir); got != "" {
			t.Errorf("in %s can be seen %q", dir, got)
		}
	}
	if got := b.sh("ls -A " + root + " " + data); strings.Contains(got, "other") || strings.Contains(got, "secret") {
		t.Errorf("of the data directory can be seen %q", got)
	}
	if got := b.sh(`for d in /proc/[0-9]*; do tr '\0' ' ' <$d/cmdline 2>/dev/null; echo; done`); strings.Contains(got, "sleep 1000") || strings.Contains(got, "nest.test") {
		t.Errorf("foreign processes can be seen: %q", got)
	}
	if got := b.sh("echo x >own; echo y >/tmp/mine; ls /var/tmp; echo z >/dev/shm/z; echo q >$PWD@side/in/f"); !strings.Contains(got, "mine") {
		t.Errorf("/var/tmp has %q, want what /tmp has", got)
	}
	if _, err := os.Stat(filepath.Join(b.tmp, "mine")); err != nil {
		t.Errorf("what is in /tmp is not in the sandbox's own directory: %v", err)
	}
}

func TestHostCantBeChanged(t *testing.T) {
	b := open(t, startWarden(t))
	for _, script := range []string{
		"echo x >/etc/nest-test", "echo x >>/etc/passwd", "touch /usr/x", "mkdir /x", "cd /root && touch x",
		"echo core >/proc/sys/kernel/core_pattern", "echo 1 >/proc/sys/vm/drop_caches", "echo b >/proc/sysrq-trigger",
		"echo x >/sys/kernel/uevent_helper", "mkdir /sys/fs/cgroup/memory/nest-test || mkdir /sys/fs/cgroup/nest-test",
		"mknod disk b 254 0 && dd if=disk of=/dev/null count=1", "mknod mem c 1 1 && dd if=mem of=/dev/null count=1",
		"mount -t tmpfs none /mnt", "mount -o remount,rw /", "umount /root", "umount -l /proc", "mount --bind / $PWD",
		"unshare -m umount /root", "unshare -Urm umount /root", "unshare -Urm mount -o remount,rw,bind /",
		"nsenter -t 1 -m true", "chroot /proc/1/root true", "cat /proc/1/environ /proc/1/mem", "kill -9 1 && sleep 0.1 && ! kill -0 1",
		"cd /proc/1/root && ls", "readlink /proc/1/fd/0", "[ $(ls /proc/self/fd | wc -l) -gt 4 ]", "[ $(ls /proc/1/fd | wc -l) -gt 3 ]", "echo 0 >/proc/self/oom_score_adj",
		"touch " + b.root + "/x", "rmdir $PWD", "mv $PWD $PWD-2", "touch /dev/x", "chmod 666 /dev/null", "chown 0 /dev/tty", "echo x >/dev/nothing", "hostname nest-test",
	} {
		if r := b.run(script); r.err != nil || r.status.Wait == 0 {
			t.Errorf("%q succeeds: %s (%v)", script, r.out, r.err)
		}
	}
	b.sh("echo still works >file; cat file")
	for _, path := range []string{"/etc/nest-test", "/usr/x", "/x"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was made on the host", path)
			_ = os.Remove(path)
		}
	}
}

// TestOrdinaryThingsWork says what must not be taken away.
func TestOrdinaryThingsWork(t *testing.T) {
	b := open(t, startWarden(t))
	for _, script := range []string{
		"echo x >/dev/null; head -c 10 /dev/urandom >/dev/null; head -c 5 /dev/zero >/dev/null", ": >/dev/stdout </dev/stdin",
		"cat /proc/meminfo /proc/cpuinfo /proc/self/status >/dev/null", "mkfifo f; (echo hi >f &); cat f", "ln -s x y; ln f g; chmod 700 g",
		"(sleep 0.01; kill -TERM $$) & trap 'exit 0' TERM; while :; do sleep 0.01; done", "stat /dev/pts/ptmx", "mktemp; mktemp -p /var/tmp",
		"cat /etc/passwd >/dev/null", "cp /bin/true ./t && ./t",
	} {
		b.sh(script)
	}
	if os.Geteuid() == 0 {
		b.sh("touch o; chown 1234:1234 o; [ $(stat -c %u o) = 1234 ]; chmod 600 o; cat o")
	}
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		b.sh(`/usr/bin/python3 -c 'import os, pty, multiprocessing, tempfile; pty.openpty(); multiprocessing.Queue(); print(tempfile.mkdtemp())'`)
	}
}

func TestShownInHiddenDirectories(t *testing.T) {
	warden := startWarden(t)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree(t, home, "tool/lib/x", "tool/share/data", "bin/prog -> ../tool/bin/prog", "secret/key")
	if err := os.MkdirAll(home+"/tool/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home+"/tool/bin/prog", []byte("#!/bin/sh\nls "+home+" "+home+"/tool/share\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := home + "/bin:" + testPath
	// Under /tmp, and hidden by name; see both ways of hiding.
	for name, hide := range map[string][]string{"by /tmp": DefaultHide(), "by name": append(DefaultHide(), home)} {
		t.Run(name, func(t *testing.T) {
			b := open(t, warden, func(s *Spec) {
				shown := Show(path, hide, nil)
				s.View.Hide, s.View.Show, s.View.Links = hide, shown.Paths, shown.Links
			})
			got := b.sh("prog; touch "+home+"/tool/x 2>/dev/null || echo read-only", func(c *Command) { c.Path, c.Env = path, []string{"PATH=" + path} })
			want := fmt.Sprintf("%s:\nbin\ntool\n\n%s/tool/share:\ndata\nread-only", home, home)
			if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// TestNothingIsReached dials what a plain process, and a nest that is online, can reach.
func TestNothingIsReached(t *testing.T) {
	warden := startWarden(t)
	dir := t.TempDir()
	// A socket where nothing is hidden.
	visible, err := os.MkdirTemp("/var/lib", "nest-test-")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		visible = dir
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(visible) })
	var listen []string
	for _, l := range [][2]string{{"tcp", "127.0.0.1:0"}, {"tcp", "0.0.0.0:0"}, {"unix", "@nest-test-" + filepath.Base(visible)}, {"unix", dir + "/s"}, {"unix", visible + "/t"}} {
		ln, err := net.Listen(l[0], l[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		addr := ln.Addr().String()
		if l[1] == "0.0.0.0:0" {
			_, port, _ := net.SplitHostPort(addr)
			addr = "127.0.0.1:" + port
			for _, ip := range hostIPs(t) {
				listen = append(listen, "tcp:"+net.JoinHostPort(ip, port))
			}
		}
		listen = append(listen, l[0]+":"+addr)
	}
	if info, err := os.Stat("/run/docker.sock"); err == nil && info.Mode().Type() == fs.ModeSocket && unix.Access("/run/docker.sock", unix.W_OK) == nil {
		listen = append(listen, "unix:/run/docker.sock", "unix:/var/run/docker.sock")
	}
	look := Look{Dial: listen}
	outside, err := warden.Look(t.Context(), look)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range outside.Dial {
		if err != nil {
			t.Fatalf("%s can't be reached by anybody: %v", listen[i], err)
		}
	}
	offline, err := open(t, warden).Look(t.Context(), look)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range offline.Dial {
		if err == nil {
			t.Errorf("%s can be reached offline", listen[i])
		}
	}
	online, err := open(t, warden, func(s *Spec) { s.Offline, s.Name = false, s.Name+"2" }).Look(t.Context(), look)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range online.Dial {
		abstractOrTCP := !strings.HasPrefix(listen[i], "unix:/")
		if reached := err == nil; reached != abstractOrTCP {
			t.Errorf("%s: reached online: %v (%v)", listen[i], reached, err)
		}
	}
	// And by a program, not only by the thread that starts programs.
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("there is no python3 to dial with")
	}
	const dial = `
import socket, sys
for target in sys.argv[1:]:
    kind, _, where = target.partition(":")
    s = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
    s.settimeout(1)
    try:
        s.connect(where.replace("@", "\0") if kind == "unix" else (where.rsplit(":", 1)[0], int(where.rsplit(":", 1)[1])))
        print("reached", target)
    except OSError: pass
`
	reachable := len(slices.DeleteFunc(slices.Clone(listen), func(s string) bool { return strings.HasPrefix(s, "unix:/") }))
	for _, offline := range []bool{true, false} {
		b := open(t, warden, func(s *Spec) { s.Offline, s.AlsoOnline, s.Name = offline, true, fmt.Sprint("python", offline) })
		for _, online := range []bool{false, true, false} {
			want := 0
			if !offline || online {
				want = reachable
			}
			got := b.sh(`exec /usr/bin/python3 -c "$@"`, func(c *Command) {
				c.Argv, c.Online = append(c.Argv, append([]string{"sh", dial}, listen...)...), online
			})
			if n := strings.Count(got, "reached"); n != want {
				t.Errorf("nest offline %v, command online %v: a program reaches %d, want %d:\n%s", offline, online, n, want, got)
			}
		}
	}
}

// hostIPs lists the IPv4 addresses of this host that stay while a test runs: networks of
// containers ("br-…", and "tmn…" and "tme…" of the docker runtime's) come and go with the tests of other packages.
func hostIPs(t *testing.T) []string {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var ips []string
	for _, i := range interfaces {
		if slices.ContainsFunc([]string{"br-", "veth", "tmn", "tme"}, func(p string) bool { return strings.HasPrefix(i.Name, p) }) {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // It went in this moment.
		}
		for _, a := range addrs {
			if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.To4() != nil && !ip.IsLoopback() {
				ips = append(ips, ip.String())
			}
		}
	}
	return ips
}

// TestSocket serves from the worker into a nest that reaches nothing else, and dials
// what listens inside.
func TestSocket(t *testing.T) {
	b := open(t, startWarden(t))
	fd, err := b.Socket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 5)); err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "listener")
	ln, err := net.FileListener(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	seen, err := b.Look(t.Context(), Look{Dial: []string{"tcp:" + ln.Addr().String()}})
	if err != nil || seen.Dial[0] != nil {
		t.Errorf("the worker's listener can't be reached inside: %v, %v", err, seen.Dial)
	}
	if seen, err = b.warden.Look(t.Context(), Look{Dial: []string{"tcp:" + ln.Addr().String()}}); err != nil || seen.Dial[0] == nil {
		t.Errorf("the worker's listener can be reached outside: %v", err)
	}
}
