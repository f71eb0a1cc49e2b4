// SPDX-License-Identifier: Apache-2.0

package netcheck

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

// kind is what a target is, which decides what answers mean.
type kind int

const (
	elsewhere kind = iota // an address outside of the box
	inside                // an address of the box itself: a refusal is the box's own
	raw                   // a socket that reads and writes frames as they are
)

// target is something that a box tries to reach.
type target struct {
	what   string // in a sentence: "box reached …"
	kind   kind
	socket boxtool.Socket
}

const (
	afPacket   = 17
	ethPAll    = 0x0300 // in network order
	dnsPort    = 53
	dnsFailure = 0x0f // the bits of a code other than "no error"
)

var (
	// metadata is where clouds tell a machine its secrets.
	metadata = netip.MustParseAddrPort("169.254.169.254:80")
	// internet is an address that nobody has: 198.51.100.0/24 is for documentation. The
	// way there is the way to everywhere.
	internet = netip.MustParseAddrPort("198.51.100.1:443")
	// embedded is where the engine's own resolver is, in every network but the default
	// one.
	embedded = netip.MustParseAddrPort("127.0.0.11:53")
)

func tcp(what string, at netip.AddrPort, patience time.Duration) target {
	return target{what: what, kind: kindOf(at), socket: boxtool.Socket{
		Domain: syscall.AF_INET, Type: syscall.SOCK_STREAM, Addr: at, Timeout: patience,
	}}
}

func udp(what string, at netip.AddrPort, request []byte, patience time.Duration) target {
	return target{what: what, kind: kindOf(at), socket: boxtool.Socket{
		Domain: syscall.AF_INET, Type: syscall.SOCK_DGRAM, Addr: at, Request: request, Timeout: patience,
	}}
}

func kindOf(at netip.AddrPort) kind {
	if at.Addr().IsLoopback() {
		return inside
	}
	return elsewhere
}

func packet() target {
	return target{what: "could open a raw packet socket", kind: raw, socket: boxtool.Socket{
		Domain: afPacket, Type: syscall.SOCK_RAW, Protocol: ethPAll,
	}}
}

// question asks DNS for the IPv4 address of a name.
func question(name string) []byte {
	q := []byte{0x74, 0x6d, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0} // an id, recursion wanted, one question
	for part := range strings.SplitSeq(name, ".") {
		q = append(append(q, byte(len(part))), part...)
	}
	q = append(q, 0)
	q = binary.BigEndian.AppendUint16(q, 1) // A
	return binary.BigEndian.AppendUint16(q, 1)
}
