// SPDX-License-Identifier: Apache-2.0

package netcheck

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// host is what this machine has that a box must not reach.
type host struct {
	addrs []address
	tcp   net.Listener // on every address; the kernel answers for it
	udp   []net.PacketConn
	wg    sync.WaitGroup
}

// address is one of this machine's.
type address struct {
	on string // the interface
	ip netip.Addr
}

// listen opens a TCP port on every IPv4 address, and a UDP port on each, which sends
// every datagram back. One for all would answer from whatever address is nearest.
func listen(ctx context.Context) (h *host, err error) {
	h = &host{}
	defer func() {
		if err != nil {
			h.close()
			h, err = nil, fmt.Errorf("listen on this machine: %w", err)
		}
	}()
	if h.addrs, err = addresses(); err != nil {
		return h, err
	}
	var conf net.ListenConfig
	if h.tcp, err = conf.Listen(ctx, "tcp4", "0.0.0.0:0"); err != nil {
		return h, err
	}
	for _, a := range h.addrs {
		conn, err := conf.ListenPacket(ctx, "udp4", netip.AddrPortFrom(a.ip, 0).String())
		if err != nil {
			return h, err
		}
		h.udp = append(h.udp, conn)
		h.wg.Go(func() { echo(conn) })
	}
	return h, nil
}

func echo(conn net.PacketConn) {
	buf := make([]byte, 64)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = conn.WriteTo(buf[:n], from)
	}
}

func (h *host) close() {
	if h.tcp != nil {
		_ = h.tcp.Close()
	}
	for _, conn := range h.udp {
		_ = conn.Close()
	}
	h.wg.Wait()
}

// targets are the listeners.
func (h *host) targets(patience time.Duration) []target {
	port := uint16(h.tcp.Addr().(*net.TCPAddr).Port)
	var list []target
	for i, a := range h.addrs {
		what := fmt.Sprintf("reached a listener of this machine at %s (%s)", a.ip, a.on)
		list = append(list,
			tcp(what, netip.AddrPortFrom(a.ip, port), patience),
			udp(what+" by UDP", h.udp[i].LocalAddr().(*net.UDPAddr).AddrPort(), []byte("tidemill"), patience))
	}
	return list
}

// maxAddresses bounds the check on a machine with very many addresses.
const maxAddresses = 32

// addresses returns this machine's IPv4 addresses, each with its interface's name. Those
// of other trials' networks, whose bridges begin with a prefix of ours, are all alike
// and come last.
func addresses() ([]address, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("interfaces of this machine: %w", err)
	}
	var first, last []address
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			continue // it went away
		}
		for _, a := range addrs {
			prefix, err := netip.ParsePrefix(a.String())
			switch {
			case err != nil || !prefix.Addr().Is4():
			case strings.HasPrefix(i.Name, "tmn"), strings.HasPrefix(i.Name, "tme"):
				last = append(last, address{i.Name, prefix.Addr()})
			default:
				first = append(first, address{i.Name, prefix.Addr()})
			}
		}
	}
	all := append(first, last...)
	return all[:min(len(all), maxAddresses)], nil
}

// resolvers returns the IPv4 name servers of this machine.
func resolvers() []netip.Addr {
	data, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	var ips []netip.Addr
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if ip, err := netip.ParseAddr(f[1]); err == nil && ip.Unmap().Is4() {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips
}
