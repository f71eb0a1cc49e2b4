// SPDX-License-Identifier: Apache-2.0

// Package subprocess runs trials as child processes of the worker, each in a directory of
// its own and, where the kernel allows it, in namespaces of its own.
//
// It needs nothing installed. What it protects from depends on the machine, is found out
// there by trying, and is what [Runtime.Properties] says, the rest in sentences.
// Everywhere it promises order: whose directory it is, that commands end when they
// should, and that nothing stays behind.
//
// # Layout
//
//	<root>/<name>            the workdir; its base name is the sandbox's name
//	<root>/<name>@side/      everything else of the sandbox
//	    owner.json           whose it is: store, labels, nonce, proof of the workdir; then,
//	                         appended, how to find the nests that it had
//	    kept.json            that it was left on purpose, and how to go on with it
//	    tmp/                 TMPDIR of the commands
//	    logs/{agent,verifier,artifacts}/  tests/  solution/  input/
//	<root>/<name>@new-<nonce>/   a sandbox in the making
//	<root>/<name>@old-<nonce>/   a sandbox that is being destroyed, not by its owner
//	<root>/<pid>@spare-<id>/     emptied directories of this process, for its next sandboxes
//
// A name can't hold "@", so that no two names share a directory.
//
// # Ownership
//
// A sandbox is made under a name that nobody else uses, with its owner record
// complete and its lock held, and then published by rename: of two that want one
// name exactly one succeeds, and there is no moment in which a directory exists
// without saying whose it is.
//
// The owner is alive as long as the side directory is locked (flock). A lock is
// better proof than a process id and its start time: it dies with the process
// however that ends, it can't be reused, it means the same in every PID namespace
// that shares the directory, and testing it is the same step as taking it, so that
// two workers never take over one leftover. It is on the directory and not on the
// record, because a program inside may delete files by accident, but can't make the
// directory that we hold another one.
//
// Nothing is removed for its name, with one exception: while we hold a side directory
// that has its name, whatever stands in the place of its workdir was put there by the
// sandbox's own programs (see mend.go). A handle carries inode, birth time and nonce of
// the side directory, the record those of the workdir; whatever differs is somebody
// else's and stays. (Device numbers are left out: they change when a machine
// restarts, and the root is one file system.)
//
// # Isolation
//
// With namespaces (see internal/nest) a sandbox's programs are alone: no process outlives
// the sandbox or its worker, the host's files are read-only, homes, /run, the data
// directory and other sandboxes are hidden, and no_internet, memory, processes, files and
// disk are what the run asked for. Programs that make a [Runtime] call [Main] first thing
// in main. What can't be had is refused. A run chooses under runtime.options:
//
//	isolation: auto | none | required
//	visible: [PATH, …]       seen, read-only, although in a hidden directory
//
// Programs in PATH are seen with their installations, wherever they are. /tmp and
// /var/tmp are the sandbox's tmp directory. resources.disk puts all of the sandbox's files
// onto a disk in memory, which counts towards resources.memory. When a phase with the
// host's network is followed by one without, the processes that it left are ended.
//
// # Plain processes
//
// Without, every command is a session and a process group of its own and dies with the
// worker (Linux: parent death signal). Its environment has TIDEMILL_SANDBOX, a nonce that
// descendants inherit; by it, and by their current directory, descendants are found
// that left the group. What hides both is not found: see [Runtime.Properties].
package subprocess
