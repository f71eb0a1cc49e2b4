// SPDX-License-Identifier: Apache-2.0

package netcheck

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

const (
	unreach = byte(syscall.ENETUNREACH)
	refused = byte(syscall.ECONNREFUSED)
	timeout = byte(syscall.ETIMEDOUT)
	eperm   = byte(syscall.EPERM)
)

func TestFind(t *testing.T) {
	out := tcp("x", netip.MustParseAddrPort("10.0.0.1:1"), time.Second)
	own := tcp("x", netip.MustParseAddrPort("127.0.0.1:1"), time.Second)
	name := udp("x", embedded, nil, time.Second)
	name.socket.Mask = dnsFailure
	for _, c := range []struct {
		name   string
		target target
		answer byte
		want   finding
	}{
		{"it worked", out, 0, reached},
		{"somebody refused", out, refused, reached},
		{"somebody hung up", out, byte(syscall.ECONNRESET), reached},
		{"no way there", out, unreach, closed},
		{"not allowed to send", out, eperm, closed},
		{"silence", out, timeout, silent},
		{"nobody there", out, byte(syscall.EHOSTUNREACH), silent},
		{"an odd error", out, byte(syscall.EINVAL), doubtful},
		{"the box's own address refused", own, refused, closed},
		{"the box's own address works", own, 0, reached},
		{"the name was found", name, 0, reached},
		{"there is no such name", name, boxtool.Refused, closed},
		{"no resolver in the box", name, refused, closed},
		{"a raw socket", packet(), 0, reached},
		{"no permission for one", packet(), eperm, closed},
		{"no such kind of socket", packet(), byte(syscall.EAFNOSUPPORT), doubtful},
	} {
		if got := c.target.find(c.answer); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	targets := []target{
		tcp(whatNeighbour, netip.MustParseAddrPort("10.0.0.2:7"), time.Second),
		udp(whatName, embedded, nil, time.Second),
		tcp("reached the host", netip.MustParseAddrPort("10.0.0.1:1"), time.Second),
		packet(),
	}
	shut := []byte{unreach, refused, unreach, eperm}
	open := []byte{0, 0, 0, 0}
	both := []runtime.NetworkPolicy{runtime.FullInternet, runtime.NoInternet}
	for _, c := range []struct {
		name                      string
		closed, control, switched []byte
		policies                  []runtime.NetworkPolicy
		why, change               string // of no_internet, and of switching
	}{
		{"as it should be", shut, open, shut[:3], both, "", ""},
		{"silence where the control got through", []byte{timeout, refused, timeout, eperm}, open, []byte{timeout, timeout, timeout}, both, "", ""},
		{"a firewall between bridges and the host", shut, []byte{0, 0, timeout, 0}, shut[:3], both, "", ""},
		{"silence where the control got none either", []byte{unreach, refused, timeout, eperm}, []byte{0, 0, timeout, 0}, shut[:3], both[:1], "whether it reached the host", "whether it reached the host"},
		{"the host was reached", []byte{unreach, refused, 0, eperm}, open, shut[:3], both[:1], "A box without a network reached the host.", "reached the host"},
		{"the host refused", []byte{unreach, refused, refused, eperm}, open, shut[:3], both[:1], "reached the host", "reached the host"},
		{"an odd error", []byte{unreach, refused, byte(syscall.EINVAL), eperm}, open, shut[:3], both[:1], "invalid argument", "invalid argument"},
		{"everything was reached", open, open, shut[:3], both[:1], "a neighbour on a bridge network, found a neighbour's name, reached the host, could open", "neighbour"},
		{"open after the switch", shut, open, []byte{unreach, timeout, 0}, both, "", "A box that was taken off its network reached the host."},
		{"the control is cut off", shut, shut, shut[:3], nil, "would prove nothing: a box on a plain bridge network, which should have reached a neighbour", "prove nothing"},
		{"the control finds no names", shut, []byte{0, timeout, 0, 0}, shut[:3], nil, "found a neighbour's name, has not", "prove nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := (&observation{targets, c.closed, c.control, c.switched}).judge()
			if !slices.Equal(r.Policies, c.policies) {
				t.Errorf("policies %v, want %v", r.Policies, c.policies)
			}
			for got, want := range map[string]string{r.Why[runtime.NoInternet]: c.why, r.Switch: c.change} {
				if (got == "") != (want == "") || !strings.Contains(got, want) {
					t.Errorf("%q, want %q in it", got, want)
				}
			}
			if full := slices.Contains(r.Policies, runtime.FullInternet); full == (r.Why[runtime.FullInternet] != "") {
				t.Errorf("full_internet holds: %v, and why not: %q", full, r.Why[runtime.FullInternet])
			}
		})
	}
}

func TestASentenceIsNotTooLong(t *testing.T) {
	if got := some([]string{"1", "2", "3", "4", "5", "6"}); got != "1, 2, 3, 4, 2 more" {
		t.Error(got)
	}
}

func TestQuestion(t *testing.T) {
	want := []byte("tm\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x03bcd\x00\x00\x01\x00\x01")
	if got := question("a.bcd"); !bytes.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestImported(t *testing.T) {
	for _, c := range []struct{ progress, id, err string }{
		{`{"status":"Importing"}` + "\n" + `{"status":"sha256:1"}`, "sha256:1", ""},
		{`{"status":"sha256:1"}{"error":"no space left"}`, "", "no space left"},
		{`{"status":`, "", "progress"},
		{``, "", "named no image"},
	} {
		id, err := imported(strings.NewReader(c.progress))
		if id != c.id || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v; want %q, %q", c.progress, id, err, c.id, c.err)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{"nothing": {}, "a negative time": {Box: like, Patience: -1}} {
		if _, err := Run(t.Context(), nil, o); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}
