// SPDX-License-Identifier: Apache-2.0

package boxtool_test

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

func arg(t *testing.T, s boxtool.Socket) string {
	t.Helper()
	a, err := s.Arg()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// answerUDP answers every datagram with reply, or not at all.
func answerUDP(t *testing.T, reply []byte) netip.AddrPort {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, boxtool.MaxRequest)
		for {
			_, from, err := c.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			if reply != nil {
				_, _ = c.WriteToUDPAddrPort(reply, from)
			}
		}
	}()
	t.Cleanup(func() { _ = c.Close(); <-done })
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// listenTCP gives every connection to serve, or leaves it to the kernel.
func listenTCP(t *testing.T, serve func(net.Conn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for serve != nil {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func TestProbe(t *testing.T) {
	closed := listenTCP(t, nil) // for its port, once it is closed
	open := listenTCP(t, nil)
	hangsUp := listenTCP(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	echo := listenTCP(t, func(c net.Conn) {
		b := make([]byte, boxtool.MaxRequest)
		n, _ := c.Read(b)
		_, _ = c.Write(b[:n])
	})
	silent := answerUDP(t, nil)
	tcp := func(at netip.AddrPort, request string) boxtool.Socket {
		return boxtool.Socket{Domain: syscall.AF_INET, Type: syscall.SOCK_STREAM, Addr: at, Request: []byte(request), Timeout: 10 * time.Second}
	}
	udp := func(at netip.AddrPort, mask byte) boxtool.Socket {
		return boxtool.Socket{Domain: syscall.AF_INET, Type: syscall.SOCK_DGRAM, Addr: at, Request: []byte("anybody?"), Mask: mask, Timeout: 10 * time.Second}
	}
	soon := func(s boxtool.Socket) boxtool.Socket { s.Timeout = 20 * time.Millisecond; return s }
	nowhere := netip.AddrPortFrom(closed.Addr(), 1)

	cases := []struct {
		name   string
		socket boxtool.Socket
		want   byte
	}{
		{"a port that listens", tcp(open, ""), 0},
		{"a port that doesn't", tcp(nowhere, ""), byte(syscall.ECONNREFUSED)},
		{"an answer", tcp(echo, strings.Repeat("x", boxtool.MaxRequest)), 0},
		{"closed without an answer", tcp(hangsUp, "x"), byte(syscall.ECONNRESET)},
		{"no answer in time", soon(tcp(open, "hello")), byte(syscall.ETIMEDOUT)},
		{"a broadcast address", tcp(netip.MustParseAddrPort("255.255.255.255:1"), ""), byte(syscall.ENETUNREACH)},
		{"a datagram is answered", udp(answerUDP(t, []byte("x")), 0), 0},
		{"a datagram to nobody", udp(nowhere, 0), byte(syscall.ECONNREFUSED)},
		{"a datagram is not answered", soon(udp(silent, 0)), byte(syscall.ETIMEDOUT)},
		{"an answer without the masked bits", udp(answerUDP(t, []byte{9, 9, 9, 0xf0}), 0x0f), 0},
		{"an answer with them", udp(answerUDP(t, []byte{0, 0, 0, 0x03}), 0x0f), boxtool.Refused},
		{"an answer that is too short for them", udp(answerUDP(t, []byte{0, 0, 0}), 0x0f), boxtool.Refused},
		{"only a socket", boxtool.Socket{Domain: syscall.AF_INET, Type: syscall.SOCK_DGRAM}, 0},
		{"a socket that there isn't", boxtool.Socket{Domain: syscall.AF_INET, Type: 77}, byte(syscall.EINVAL)},
	}
	eachTool(t, func(t *testing.T, box tool) {
		var args []string
		var want []byte
		for _, c := range cases {
			args = append(args, arg(t, c.socket))
			want = append(want, c.want)
		}
		code, out := box.run(t, append([]string{boxtool.Probe}, args...)...)
		if code != 0 || len(out) != len(want) {
			t.Fatalf("exit code %d, %d answers, want %d", code, len(out), len(want))
		}
		for i, c := range cases {
			if out[i] != c.want {
				t.Errorf("%s: %d (%v), want %d", c.name, out[i], syscall.Errno(out[i]), c.want)
			}
		}
	})
}

func TestProbeOfAPacketSocketWithoutTheCapability(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("root is needed to compare with")
	}
	packet := arg(t, boxtool.Socket{Domain: syscall.AF_PACKET, Type: syscall.SOCK_RAW, Protocol: 0x0300})
	eachTool(t, func(t *testing.T, box tool) {
		if _, out := box.run(t, boxtool.Probe, packet); out != "\x00" {
			t.Errorf("root: %q, want success", out)
		}
		cmd := box.command(t, boxtool.Probe, packet)
		cmd.SysProcAttr = nobody()
		if _, out := finish(t, cmd); out != string(rune(syscall.EPERM)) {
			t.Errorf("nobody: %q, want EPERM", out)
		}
	})
}

func TestListen(t *testing.T) {
	eachTool(t, func(t *testing.T, box tool) {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		must(t, err)
		at := l.Addr().(*net.TCPAddr).AddrPort()
		socket := arg(t, boxtool.Socket{Domain: syscall.AF_INET, Type: syscall.SOCK_STREAM, Addr: at})
		if code, _ := box.run(t, boxtool.Listen, socket); syscall.Errno(code) != syscall.EADDRINUSE {
			t.Errorf("exit code %d, want EADDRINUSE", code)
		}
		must(t, l.Close())
		cmd := box.command(t, boxtool.Listen, socket)
		must(t, cmd.Start())
		defer func() { _ = cmd.Wait() }()
		defer func() { _ = cmd.Process.Kill() }()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) { // nothing tells when it listens
			c, err := net.Dial("tcp4", at.String())
			if err == nil {
				must(t, c.Close())
				return
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	})
}

func TestSocketArgRefuses(t *testing.T) {
	for name, s := range map[string]boxtool.Socket{
		"IPv6":            {Addr: netip.MustParseAddrPort("[::1]:1")},
		"a large request": {Request: slices.Repeat([]byte{1}, boxtool.MaxRequest+1)},
	} {
		if a, err := s.Arg(); err == nil {
			t.Errorf("%s: %s", name, a)
		}
	}
}
