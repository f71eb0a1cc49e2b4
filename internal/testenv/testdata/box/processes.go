// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func exit(args []string) error {
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

func die(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := syscall.Kill(os.Getpid(), syscall.Signal(n)); err != nil {
		return err
	}
	return hold(nil)
}

func sleep(args []string) error {
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	time.Sleep(d)
	return nil
}

func hold([]string) error {
	for {
		time.Sleep(time.Hour)
	}
}

func ignore([]string) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return nil
}

func start(session bool, args ...string) (int, error) {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

func child(args []string) error {
	pid, err := start(false, args...)
	if err == nil {
		fmt.Println(pid)
	}
	return err
}

func daemon(args []string) error {
	pid, err := start(true, args...)
	if err == nil {
		fmt.Println(pid)
	}
	return err
}

func forks(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := start(false, "hold"); err != nil {
			fmt.Println(i)
			return err
		}
	}
	fmt.Println(n)
	return nil
}

// taken keeps memory from being given back.
var taken [][]byte

func alloc(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for range n {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		taken = append(taken, block)
	}
	fmt.Println(len(taken))
	return nil
}
