// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// look finds out what this thread can reach: what it can't, its commands can't.
func look(l Look) *wireSeen {
	var seen wireSeen
	for _, target := range l.Dial {
		seen.Dial = append(seen.Dial, toWire(dial(target)))
	}
	for _, path := range l.Read {
		n, err := entries(path)
		seen.Read = append(seen.Read, toWire(err))
		seen.Entries = append(seen.Entries, n)
	}
	for _, path := range l.Write {
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err == nil {
			unix.Close(fd)
		}
		seen.Write = append(seen.Write, toWire(err))
	}
	return &seen
}

func entries(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		return -1, err
	}
	names, err := f.Readdirnames(-1)
	return len(names), err
}

// dial uses no goroutine: those would run on other threads, in other namespaces.
func dial(target string) error {
	kind, where, _ := strings.Cut(target, ":")
	var to unix.Sockaddr
	family := unix.AF_UNIX
	switch kind {
	case "unix":
		to = &unix.SockaddrUnix{Name: where}
	case "tcp":
		host, port, err := net.SplitHostPort(where)
		if err != nil {
			return err
		}
		ip, number := net.ParseIP(host).To4(), 0
		if number, err = strconv.Atoi(port); err != nil || ip == nil {
			return fmt.Errorf("address %s: want an IPv4 address and a port", where)
		}
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: number, Addr: [4]byte(ip)}
	default:
		return fmt.Errorf("target %s: want tcp:HOST:PORT or unix: and a path", target)
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// Somebody who doesn't answer is not reached.
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1})
	return unix.Connect(fd, to)
}
