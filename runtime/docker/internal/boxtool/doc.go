// SPDX-License-Identifier: Apache-2.0

// Package boxtool makes the one program of ours that runs inside a container: a static
// executable of a few kilobytes that needs no shell, no C library, no file of the image
// and no particular user, and has a single thread, so that it starts where nothing else
// can be started any more.
//
// What it does is its first argument:
//
//	(none)         be PID 1: the kernel reaps whatever dies, and no signal ends it
//	kill           kill everything but itself and PID 1
//	remove PATH…   rm -rf of absolute paths that follows no symlink
//	listen HEX     bind a socket, then stay like PID 1; HEX is from [Socket.Arg]
//	probe HEX…     try sockets one by one and write one byte about each, see [Socket]
//
// # Exit codes
//
// 0 is success and [Usage] wrong arguments. Anything else is an errno: kill says EAGAIN
// when somebody is still alive after about two seconds, remove what the kernel said about
// the entry that could not be removed, listen what bind said.
//
// # How it is made
//
// The machine code comes from the functions program, kill, remove, … of this package,
// written once over the portable steps of package asm, which turns them into code for
// amd64 and arm64. So any worker has the tool for either, whatever it runs on itself,
// there is no binary in the repository that nobody can check, and nothing but the go
// tool builds it. The alternatives were assembler functions copied out of the worker's
// own binary (only its own architecture, every line written twice), a second Go program
// (a megabyte, many threads, a build before the build), and C (a compiler on every
// builder's machine).
package boxtool
