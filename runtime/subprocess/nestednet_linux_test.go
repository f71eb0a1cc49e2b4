// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

// TestPhasesWithDifferentNetworks: set up online, work offline.
func TestPhasesWithDifferentNetworks(t *testing.T) {
	rt := nestedRuntime(t, Config{})
	sb := openWith(t, rt, nil, func(s *runtime.Spec) {
		s.Network[runtime.Setup] = runtime.Network{Policy: runtime.FullInternet}
	})
	ours, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	l, err := sb.Ingress(t.Context(), "model")
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello")
			conn.Close()
		}
	}()
	devices := func() string {
		return sh(t, sb, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort | tr '\\n' ' '")
	}
	online := devices()
	if online == "lo " {
		t.Skip("this machine has no network to be cut off from")
	}
	sh(t, sb, "setsid sleep 1000 >/dev/null 2>&1 & echo $! >pid")
	fetch := func() (string, bool) {
		if _, err := os.Stat("/bin/bash"); err != nil {
			return "", false
		}
		return sh(t, sb, "exec bash -c 'cat </dev/tcp/"+strings.Replace(l.Addr().String(), ":", "/", 1)+"'"), true
	}
	if got, ok := fetch(); ok && got != "hello" {
		t.Errorf("through the ingress, online: %q", got)
	}
	if err := sb.SetPhase(t.Context(), runtime.Agent); err != nil {
		t.Fatal(err)
	}
	if got := devices(); got != "lo " {
		t.Errorf("the agent has the devices %s", got)
	}
	if exit, _ := try(t, sb, "kill -0 $(cat pid)"); exit.OK() {
		t.Error("what setup left running still has the host's network")
	}
	if got, ok := fetch(); ok && got != "hello" {
		t.Errorf("through the ingress, offline: %q", got)
	}
	sh(t, sb, "setsid sleep 1000 >/dev/null 2>&1 & echo $! >pid")
	if err := sb.SetPhase(t.Context(), runtime.Grade); err != nil {
		t.Fatal(err)
	}
	sh(t, sb, "kill -0 $(cat pid)") // nothing to take away from it
	closeSandbox(t, sb)
	<-answered
}

// TestEndpointIntoANetworkOfItsOwn reaches a server that nobody else can.
func TestEndpointIntoANetworkOfItsOwn(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("there is no python3 to serve with")
	}
	sb := openWith(t, nestedRuntime(t, Config{}), nil, nil)
	out := sh(t, sb, `/usr/bin/python3 -c '
import os, socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
if os.fork() == 0:
    os.dup2(os.open("/dev/null", os.O_RDWR), 1); os.dup2(1, 2)
    while True:
        c, _ = s.accept()
        c.sendall(b"got " + c.makefile("rb").readline())
        c.close()
'`)
	var port int
	if _, err := fmt.Sscan(out, &port); err != nil {
		t.Fatal(err)
	}
	addr, err := sb.Endpoint(t.Context(), "", port)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := sb.Endpoint(t.Context(), "", port); err != nil || again != addr {
		t.Errorf("the second time it is %s, %v", again, err)
	}
	for range 3 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "this\n")
		if got, err := io.ReadAll(conn); err != nil || string(got) != "got this\n" {
			t.Errorf("got %q, %v", got, err)
		}
		conn.Close()
	}
	held, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	closeSandbox(t, sb)
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the endpoint outlived its sandbox")
	}
}
