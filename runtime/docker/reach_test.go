// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

// goal is something that a program in a box tries to reach.
type goal struct {
	name   string
	socket boxtool.Socket
}

func tcpGoal(name string, at netip.AddrPort) goal {
	return goal{name, boxtool.Socket{Domain: syscall.AF_INET, Type: syscall.SOCK_STREAM, Addr: at, Timeout: 5 * time.Second}}
}

func udpGoal(name string, at netip.AddrPort, request []byte) goal {
	return goal{name, boxtool.Socket{Domain: syscall.AF_INET, Type: syscall.SOCK_DGRAM, Addr: at, Request: request, Timeout: 5 * time.Second}}
}

// lookup asks the engine's resolver for a name, and fails unless it is found.
func lookup(what, name string) goal {
	q := append([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, byte(len(name))}, name...)
	q = append(q, 0, 0, 1, 0, 1)
	g := udpGoal(what, netip.MustParseAddrPort("127.0.0.11:53"), q)
	g.socket.Mask = 0x0f
	return g
}

// reach lets our tool in the box try the goals, and returns the errno of each.
func reach(t *testing.T, sb *Sandbox, goals []goal) []syscall.Errno {
	t.Helper()
	argv := []string{toolPath, boxtool.Probe}
	for _, g := range goals {
		arg, err := g.socket.Arg()
		if err != nil {
			t.Fatal(err)
		}
		argv = append(argv, arg)
	}
	var out, errOut bytes.Buffer
	exit, err := sb.Exec(t.Context(), runtime.Command{Argv: argv, Stdout: &out, Stderr: &errOut, Timeout: patience})
	if err != nil || !exit.OK() || out.Len() != len(goals) {
		t.Fatalf("probe: %+v, %v, %d answers: %s", exit, err, out.Len(), errOut.Bytes())
	}
	var answers []syscall.Errno
	for _, b := range out.Bytes() {
		answers = append(answers, syscall.Errno(b))
	}
	return answers
}

// listenAt listens for TCP until the test's end; the kernel answers.
func listenAt(t *testing.T, at string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// echoAt sends datagrams back until the test's end.
func echoAt(t *testing.T, at string) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenPacket("udp4", at)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(buf[:n], from)
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// lend gives this machine an address of somebody else's until the test's end: what is
// sent there arrives here, by the way that leads everywhere.
func lend(t *testing.T, addr string) bool {
	t.Helper()
	if os.Getuid() != 0 {
		t.Logf("%s isn't tried: giving it to this machine needs root", addr)
		return false
	}
	out, err := exec.CommandContext(t.Context(), "ip", "address", "add", addr+"/32", "dev", "lo").CombinedOutput()
	if err != nil {
		t.Logf("%s isn't tried: ip address add: %v: %s", addr, err, out)
		return false
	}
	t.Cleanup(func() {
		out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "ip", "address", "del", addr+"/32", "dev", "lo").CombinedOutput()
		if err != nil {
			t.Errorf("ip address del %s: %v: %s", addr, err, out)
		}
	})
	return true
}

// gateway is the first address of the sandbox's network, which the host has.
func gateway(t *testing.T, sb *Sandbox) netip.Addr {
	t.Helper()
	subnet, err := netip.ParsePrefix(sb.box.Facts.Subnet)
	if err != nil {
		t.Fatal(err)
	}
	return subnet.Addr().Next()
}

// neighbour starts a container that listens in a sandbox's network.
func (l *lab) neighbour(t *testing.T, sb *Sandbox) netip.AddrPort {
	t.Helper()
	const port = 8080
	made, err := l.cli.ContainerCreate(t.Context(),
		&container.Config{
			Image: l.image, Cmd: []string{"httpd", "-f", "-p", fmt.Sprint(port)},
			Labels: map[string]string{"dev.tidemill.test": t.Name()},
		},
		&container.HostConfig{NetworkMode: container.NetworkMode(sb.box.Network)}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.cli.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, container.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	if err := l.cli.ContainerStart(t.Context(), made.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	info, err := l.cli.ContainerInspect(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range info.NetworkSettings.Networks {
		at := netip.AddrPortFrom(netip.MustParseAddr(n.IPAddress), port)
		awaitOpen(t, at)
		return at
	}
	t.Fatal("the neighbour has no network")
	return netip.AddrPort{}
}

func awaitOpen(t *testing.T, at netip.AddrPort) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // nothing tells when it listens
		conn, err := net.Dial("tcp4", at.String())
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// goals is what no_internet keeps a box from and full_internet doesn't. The resolver is
// asked for the name of the box itself, which needs no other resolver.
func (l *lab) goals(t *testing.T, full *Sandbox) []goal {
	t.Helper()
	everywhere := listenAt(t, "0.0.0.0:0").Port()
	gw := gateway(t, full)
	goals := []goal{
		tcpGoal("the host at the bridge, listening everywhere", netip.AddrPortFrom(gw, everywhere)),
		tcpGoal("the host at the bridge, listening there only", listenAt(t, gw.String()+":0")),
		udpGoal("the host at the bridge by UDP", echoAt(t, gw.String()+":0"), []byte("hello")),
		tcpGoal("a neighbour", l.neighbour(t, full)),
		lookup("a name", full.Name()),
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().Is4() || p.Addr().IsLoopback() || strings.HasPrefix(a.String(), "10.213.") {
			continue // another trial's network may be gone before it is tried
		}
		goals = append(goals, tcpGoal("the host at "+p.Addr().String(), netip.AddrPortFrom(p.Addr(), everywhere)))
	}
	if lend(t, "203.0.113.77") {
		goals = append(goals,
			tcpGoal("an address of the internet", netip.AddrPortFrom(netip.MustParseAddr("203.0.113.77"), everywhere)),
			udpGoal("a name server of the internet", echoAt(t, "203.0.113.77:53"), []byte("hello")))
	}
	if lend(t, "169.254.169.254") {
		goals = append(goals, tcpGoal("the metadata address", listenAt(t, "169.254.169.254:80")))
	}
	return goals
}

func inPhases(setup, agent runtime.NetworkPolicy) func(*runtime.Spec) {
	return func(s *runtime.Spec) {
		s.Network = map[runtime.Phase]runtime.Network{runtime.Setup: {Policy: setup}, runtime.Agent: {Policy: agent}}
	}
}

func TestNoInternetFromInside(t *testing.T) {
	l := newLab(t)
	rt := l.runtime(t)
	never := l.open(t, rt)
	switching := l.open(t, rt, inPhases(runtime.FullInternet, runtime.NoInternet))
	goals := l.goals(t, switching)
	open := func(when string) {
		t.Helper()
		for i, errno := range reach(t, switching, goals) {
			if errno != 0 {
				t.Errorf("%s, %s: %v, want that it is reached", when, goals[i].name, errno)
			}
		}
	}
	closed := func(when string, sb *Sandbox) {
		t.Helper()
		for i, errno := range reach(t, sb, goals) {
			// The resolver is at an address of the box itself, where a refusal or silence is
			// nobody's answer.
			own := goals[i].socket.Addr.Addr().IsLoopback()
			if errno == 0 || !own && errno != syscall.ENETUNREACH {
				t.Errorf("%s, %s: %v, want network is unreachable", when, goals[i].name, errno)
			}
		}
	}
	open("full_internet")
	closed("no_internet", never)
	if err := switching.SetPhase(t.Context(), runtime.Agent); err != nil {
		t.Fatal(err)
	}
	closed("no_internet after full_internet", switching)
	if err := switching.SetPhase(t.Context(), runtime.Setup); err != nil {
		t.Fatal(err)
	}
	open("full_internet again")
}

func TestRawSocketsAreClosed(t *testing.T) {
	l := newLab(t)
	rt := l.runtime(t)
	const afPacket, everything = 17, 0x0003
	goals := []goal{
		{"frames", boxtool.Socket{
			Domain: afPacket, Type: syscall.SOCK_RAW,
			Protocol: int(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, everything))),
		}},
		{"ICMP", boxtool.Socket{Domain: syscall.AF_INET, Type: syscall.SOCK_RAW, Protocol: syscall.IPPROTO_ICMP}},
	}
	for _, policy := range []runtime.NetworkPolicy{runtime.NoInternet, runtime.FullInternet} {
		sb := l.open(t, rt, inPhases(policy, policy))
		for i, errno := range reach(t, sb, goals) {
			if errno != syscall.EPERM {
				t.Errorf("%s, a raw socket for %s: %v, want EPERM", policy, goals[i].name, errno)
			}
		}
	}
}
