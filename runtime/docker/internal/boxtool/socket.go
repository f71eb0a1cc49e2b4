// SPDX-License-Identifier: Apache-2.0

package boxtool

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool/asm"
)

// Socket is one socket that the tool binds ([Listen]) or tries ([Probe]). A probe makes
// it; with an address it connects it; with a request it sends that and waits for a
// first datagram or segment. It succeeded when nothing failed.
type Socket struct {
	Domain, Type, Protocol int
	// Addr is IPv4. The zero value means that making the socket is all.
	Addr netip.AddrPort
	// Request is sent once connected, at most [MaxRequest] bytes.
	Request []byte
	// Mask of the answer's fourth byte must be zero. In DNS, 0x0f is the code that says
	// whether the question was answered.
	Mask byte
	// Timeout of connecting and of waiting for an answer, each.
	Timeout time.Duration
}

// MaxRequest is the most bytes of a request.
const MaxRequest = 512

// Refused is what a probe writes where an answer came and [Socket.Mask] of it was not
// zero. All else is 0 for success, or an errno, ETIMEDOUT for a timeout of any kind.
const Refused = 201

// The record that an argument stands for, in little-endian order.
const (
	recDomain   = 0
	recType     = 4
	recProtocol = 8
	recAddrLen  = 12
	recAddr     = 16
	recTimeout  = 32 // seconds and microseconds, 64 bits each
	recMask     = 48
	recReqLen   = 52
	recRequest  = 56
	recSize     = recRequest + MaxRequest
)

// Arg returns the argument for the socket.
func (s Socket) Arg() (string, error) {
	if len(s.Request) > MaxRequest {
		return "", fmt.Errorf("a request of %d bytes: at most %d", len(s.Request), MaxRequest)
	}
	var addr [16]byte
	addrLen := 0
	if s.Addr.IsValid() {
		ip := s.Addr.Addr().Unmap()
		if !ip.Is4() {
			return "", fmt.Errorf("address %s: want IPv4", s.Addr)
		}
		binary.LittleEndian.PutUint16(addr[0:], syscall.AF_INET)
		binary.BigEndian.PutUint16(addr[2:], s.Addr.Port())
		copy(addr[4:], ip.AsSlice())
		addrLen = len(addr)
	}
	le := binary.LittleEndian
	var b []byte
	for _, n := range []int{s.Domain, s.Type, s.Protocol, addrLen} {
		b = le.AppendUint32(b, uint32(n))
	}
	b = append(b, addr[:]...)
	b = le.AppendUint64(b, uint64(s.Timeout/time.Second))
	b = le.AppendUint64(b, uint64(s.Timeout%time.Second/time.Microsecond))
	b = le.AppendUint32(b, uint32(s.Mask))
	b = le.AppendUint32(b, uint32(len(s.Request)))
	return hex.EncodeToString(append(b, s.Request...)), nil
}

const (
	einprogress = 115
	etimedout   = 110
	econnreset  = 104

	solSocket   = 1
	soRcvtimeo  = 20
	soSndtimeo  = 21
	msgNosignal = 0x4000
)

// prober is the state of the two modes.
type prober struct {
	*asm.Program
	rc, fd, length asm.Var
	rec            asm.Area
}

// sockets is the code of listen and probe.
func sockets(p *asm.Program, argc, argv asm.Var) {
	b := &prober{Program: p, rc: p.Var(), fd: p.Var(), length: p.Var(), rec: p.Area(recSize)}
	b.listen(argc, argv)
	b.probe(argc, argv)
}

func (b *prober) listen(argc, argv asm.Var) {
	arg := b.Var()
	b.Label(Listen)
	b.If(argc, asm.NE, asm.Num(3), "usage")
	b.Load(arg, 8, argv, 16)
	b.decode(arg, Listen)
	b.socket()
	b.Set(b.rc, b.fd)
	b.If(b.rc, asm.LT, asm.Num(0), "listen failed")
	b.Load(b.length, 4, b.rec, recAddrLen)
	b.Call(b.rc, "bind", b.fd, b.rec+recAddr, b.length)
	b.If(b.rc, asm.LT, asm.Num(0), "listen failed")
	// Connections are never taken: the kernel answers them all the same.
	b.Call(b.rc, "listen", b.fd, asm.Num(128))
	b.If(b.rc, asm.GE, asm.Num(0), "init")
	b.Label("listen failed")
	exitErrno(b.Program, b.rc)
}

func (b *prober) probe(argc, argv asm.Var) {
	i, arg, report := b.Var(), b.Var(), b.Area(1)
	b.Label(Probe)
	b.If(argc, asm.LT, asm.Num(3), "usage")
	b.Set(i, asm.Num(2))

	b.Label("next probe")
	b.If(i, asm.GE, argc, "all probed")
	b.Shl(arg, i, asm.Num(3))
	b.Add(arg, argv, arg)
	b.Load(arg, 8, arg, 0)
	b.Add(i, i, asm.Num(1))
	b.decode(arg, Probe)
	b.try()

	b.Label("probe done")
	b.Call(b.fd, "close", b.fd)
	b.If(b.rc, asm.EQ, asm.Num(-einprogress), "timeout")
	b.If(b.rc, asm.NE, asm.Num(-eagain), "report")
	b.Label("timeout")
	b.Set(b.rc, asm.Num(-etimedout))
	b.Label("report")
	b.Sub(b.rc, asm.Num(0), b.rc)
	b.Store(1, report, 0, b.rc)
	b.Call(b.rc, "write", asm.Num(1), report, asm.Num(1))
	b.If(b.rc, asm.GE, asm.Num(1), "next probe")
	exitErrno(b.Program, b.rc) // nobody listens

	b.Label("all probed")
	exit(b.Program, asm.Num(0))
}

// try goes to "probe done" with 0 or a negative code in rc.
func (b *prober) try() {
	const done = "probe done"
	c, mask := b.Var(), b.Var()
	b.socket()
	b.Set(b.rc, b.fd)
	b.If(b.rc, asm.LT, asm.Num(0), done)
	b.Set(b.rc, asm.Num(0))
	b.Load(b.length, 4, b.rec, recAddrLen)
	b.If(b.length, asm.EQ, asm.Num(0), done)
	for _, option := range []asm.Num{soSndtimeo, soRcvtimeo} {
		b.Call(b.rc, "setsockopt", b.fd, asm.Num(solSocket), option, b.rec+recTimeout, asm.Num(16))
		b.If(b.rc, asm.LT, asm.Num(0), done)
	}
	b.Call(b.rc, "connect", b.fd, b.rec+recAddr, b.length)
	b.If(b.rc, asm.LT, asm.Num(0), done)
	b.Load(b.length, 4, b.rec, recReqLen)
	b.If(b.length, asm.EQ, asm.Num(0), done)
	b.Call(b.rc, "sendto", b.fd, b.rec+recRequest, b.length, asm.Num(msgNosignal), asm.Num(0), asm.Num(0))
	b.If(b.rc, asm.LT, asm.Num(0), done)
	b.Call(b.rc, "recvfrom", b.fd, b.rec+recRequest, asm.Num(MaxRequest), asm.Num(0), asm.Num(0), asm.Num(0))
	b.If(b.rc, asm.LT, asm.Num(0), done)
	b.Set(b.length, b.rc)
	b.Set(b.rc, asm.Num(-econnreset)) // closed without an answer
	b.If(b.length, asm.EQ, asm.Num(0), done)
	b.Load(mask, 4, b.rec, recMask)
	b.Set(b.rc, asm.Num(0))
	b.If(mask, asm.EQ, asm.Num(0), done)
	b.Set(b.rc, asm.Num(-Refused))
	b.If(b.length, asm.LT, asm.Num(4), done)
	b.Load(c, 1, b.rec+recRequest, 3)
	b.And(c, c, mask)
	b.If(c, asm.NE, asm.Num(0), done)
	b.Set(b.rc, asm.Num(0))
}

// socket makes the record's socket.
func (b *prober) socket() {
	domain, kind, protocol := b.Var(), b.Var(), b.Var()
	b.Load(domain, 4, b.rec, recDomain)
	b.Load(kind, 4, b.rec, recType)
	b.Load(protocol, 4, b.rec, recProtocol)
	b.Call(b.fd, "socket", domain, kind, protocol)
}

// decode makes the record of hexadecimal digits, two a byte, at an address.
func (b *prober) decode(at asm.Var, id string) {
	to, end, high, low := b.Var(), b.Var(), b.Var(), b.Var()
	b.Set(to, b.rec)
	b.Set(end, b.rec+recSize)
	b.Label("digits " + id)
	b.Load(high, 1, at, 0)
	b.If(high, asm.EQ, asm.Num(0), "decoded "+id)
	b.If(to, asm.EQ, end, "usage")
	b.Load(low, 1, at, 1)
	b.If(low, asm.EQ, asm.Num(0), "usage")
	b.digit(high)
	b.digit(low)
	b.Shl(high, high, asm.Num(4))
	b.Or(high, high, low)
	b.Store(1, to, 0, high)
	b.Add(to, to, asm.Num(1))
	b.Add(at, at, asm.Num(2))
	b.Goto("digits " + id)
	b.Label("decoded " + id)
	b.Sub(to, to, b.rec)
	b.If(to, asm.LT, asm.Num(recRequest), "usage")
}

// digit turns '0' to '9' and 'a' to 'f' into their value: letters are those with bit 6.
func (b *prober) digit(d asm.Var) {
	letter := b.Var()
	b.Shr(letter, d, asm.Num(6))
	b.And(d, d, asm.Num(15))
	b.Add(d, d, letter)
	b.Shl(letter, letter, asm.Num(3))
	b.Add(d, d, letter)
}
