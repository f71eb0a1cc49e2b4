// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

const greeting = "hello from box\n"

func listen(args []string) error {
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("listening", l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.WriteString(c, greeting)
			_ = c.Close()
		}()
	}
}

func dial(args []string) error { return connect("tcp", args[0]) }

func unix(args []string) error { return connect("unix", args[0]) }

// connect prints what the other side says unasked, if it says it soon.
func connect(network, address string) error {
	c, err := net.DialTimeout(network, address, 2*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println("connected")
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.Copy(os.Stdout, c)
	return nil
}

func udp(args []string) error {
	c, err := net.Dial("udp", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.WriteString(c, greeting)
	return err
}

func lookup(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, args[0])
	for _, a := range addrs {
		fmt.Println(a)
	}
	return err
}

func raw([]string) error {
	const allProtocols = 0x0300 // ETH_P_ALL in network order
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, allProtocols)
	if err != nil {
		return err
	}
	return syscall.Close(fd)
}
