// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func args(args []string) error {
	for _, a := range args {
		fmt.Print(a, "\x00")
	}
	return nil
}

func printOut(args []string) error {
	fmt.Println(strings.Join(args, " "))
	return nil
}

func printErr(args []string) error {
	fmt.Fprintln(os.Stderr, strings.Join(args, " "))
	return nil
}

func env([]string) error {
	for _, e := range os.Environ() {
		fmt.Println(e)
	}
	return nil
}

func id([]string) error {
	fmt.Println(os.Getuid(), os.Getgid())
	return nil
}

func pwd([]string) error {
	dir, err := os.Getwd()
	fmt.Println(dir)
	return err
}

func cat(args []string) error {
	if len(args) == 0 {
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	}
	for _, name := range args {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func write(args []string) error { return os.WriteFile(args[0], []byte(args[1]), 0o644) }

func mkdir(args []string) error { return os.MkdirAll(args[0], 0o755) }

func ls(args []string) error {
	entries, err := os.ReadDir(args[0])
	for _, e := range entries {
		fmt.Println(e.Name())
	}
	return err
}

func stat(args []string) error {
	info, err := os.Lstat(args[0])
	if err != nil {
		return err
	}
	sys := info.Sys().(*syscall.Stat_t)
	fmt.Println(info.Mode(), sys.Uid, sys.Gid, info.Size())
	return nil
}

func chown(args []string) error {
	uid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	return os.Chown(args[1], uid, uid)
}

func fill(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	f, err := os.Create(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	written, block := 0, make([]byte, 1<<20)
	for range n {
		k, err := f.Write(block)
		written += k
		if err != nil {
			fmt.Println(written)
			return err
		}
	}
	fmt.Println(written)
	return f.Close()
}

func files(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var open []*os.File
	for range n {
		f, err := os.Open(os.DevNull)
		if err != nil {
			fmt.Println(len(open))
			return err
		}
		open = append(open, f)
	}
	fmt.Println(len(open))
	return nil
}
