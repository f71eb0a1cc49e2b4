// SPDX-License-Identifier: Apache-2.0

// Box is the only program of the box image: what tests run where there is no shell.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

const help = `usage: box COMMAND [ARG…] [+ COMMAND [ARG…]]…

Commands run one after another; the first that fails ends the program with 1.

  args ARG…         print each argument and a NUL byte
  print TEXT…       print the texts and a newline
  error TEXT…       the same on standard error
  env               print the environment
  id                print "uid gid"
  pwd               print the working directory
  cat [FILE…]       print files, or standard input
  write FILE TEXT   write a file
  mkdir DIR         make a directory and its parents
  ls DIR            print the names in a directory, sorted
  stat PATH         print "mode uid gid size"
  chown UID FILE    give a file away
  exit CODE         end the program
  die SIGNAL        end the program by a signal, a number
  sleep DURATION    wait, as in 1.5s
  hold              wait for ever
  ignore            ignore SIGTERM, SIGINT and SIGHUP
  child ARG…        start box ARG… without streams, print its pid, don't wait
  daemon ARG…       the same in a session of its own
  forks N           start N children that hold; print how many could be started
  alloc MIB         take memory and touch it
  fill FILE MIB     write a file of zeros; print how many bytes there was room for
  files N           open N files; print how many could be opened
  listen ADDRESS    answer each TCP connection with a line, for ever
  dial ADDRESS      connect by TCP within 2 s and print what comes, or how it failed
  udp ADDRESS       send a datagram
  lookup NAME       resolve a host name within 5 s
  raw               open an AF_PACKET socket
  unix PATH         connect to a unix socket
  help              print this
`

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"help"}
	}
	for len(args) > 0 {
		command := args
		if i := slices.Index(args, "+"); i >= 0 {
			command, args = args[:i], args[i+1:]
		} else {
			args = nil
		}
		if err := run(command); err != nil {
			fmt.Fprintf(os.Stderr, "box %s: %v\n", strings.Join(command, " "), err)
			os.Exit(1)
		}
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command; box help tells which there are")
	}
	name, args := args[0], args[1:]
	c, ok := commands[name]
	if !ok {
		return fmt.Errorf("no such command; box help tells which there are")
	}
	if len(args) < c.least {
		return fmt.Errorf("want %d arguments, got %d", c.least, len(args))
	}
	return c.run(args)
}

type command struct {
	least int
	run   func(args []string) error
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"args": {0, args}, "print": {0, printOut}, "error": {0, printErr}, "env": {0, env},
		"id": {0, id}, "pwd": {0, pwd}, "cat": {0, cat}, "write": {2, write}, "mkdir": {1, mkdir},
		"ls": {1, ls}, "stat": {1, stat}, "chown": {2, chown},
		"exit": {1, exit}, "die": {1, die}, "sleep": {1, sleep}, "hold": {0, hold}, "ignore": {0, ignore},
		"child": {1, child}, "daemon": {1, daemon}, "forks": {1, forks},
		"alloc": {1, alloc}, "fill": {2, fill}, "files": {1, files},
		"listen": {1, listen}, "dial": {1, dial}, "udp": {1, udp}, "lookup": {1, lookup},
		"raw": {0, raw}, "unix": {1, unix},
		"help": {0, func([]string) error { fmt.Print(help); return nil }},
	}
}
