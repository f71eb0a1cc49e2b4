// SPDX-License-Identifier: Apache-2.0

// Package docker runs each trial in a container of its own, on the engine that DOCKER_HOST
// names or the one of this machine. It needs no engine before it is used.
//
// # The container
//
// Its name is the sandbox's, and labels (dev.tidemill.*) say whose it is. PID 1 is a
// program of ours of a few kilobytes (internal/boxtool) in the place of the image's entrypoint; it
// ignores signals and does nothing. So everything else in the container can be killed, and
// the container stays. Commands are execs of the engine, side by side. The image's health
// check doesn't run, and its log driver is none.
//
// Capabilities are the engine's default set without NET_RAW and MKNOD, and no program gains
// more (no-new-privileges), so setuid programs do nothing and su from root works. Limits
// that the engine would take and not keep are refused. resources.disk bounds the
// container's layer where the storage driver has quotas, which is tried once; else the
// workdir is a disk in memory that begins with the image's files.
//
// # Networks
//
// Without a network in any phase the container has none for good. Where a phase has
// full_internet it gets a bridge network of its own, with a small subnet from our pool, and
// SetPhase connects it or takes it off and looks whether that is so. What the engine really
// does is tried when it is first used (internal/netcheck); a policy that doesn't hold is not
// offered. limited_internet, services and stacks are refused.
//
// # Ends
//
// A timeout, the end of a context and EndProcesses climb a ladder: the tool in the box
// kills everything, for 2 s at most; the engine's list of processes proves that only PID 1
// is left; else the container is stopped and started, and looked at again; else the sandbox
// is lost. A stop keeps the layer, saves and restores a disk in memory, and loses
// /dev/shm. When the engine isn't heard from, the error is trouble of the runtime, for
// nobody knows.
//
// A command that is ended takes everything in the box with it, what earlier commands left
// running included, for their processes can't be told apart. Beside other commands it
// takes only its own descendants and session, where the engine runs on this machine and the
// worker may signal them. Where not, a timeout ends the others too, with an error that says
// so; a caller who only gave up takes away the streams of his command, which ends with the
// next EndProcesses at the latest.
//
// Exit codes are the engine's: 128+n for a death by signal n, which can't be told from an
// exit with that code, so Exit.Signal is empty unless we killed it. A kill for want of
// memory is proven by the engine's events; a lack of processes by the kernel's count, and a
// full disk by a look at it, where the engine runs on this machine.
//
// # Files
//
// Copies are the engine's archive calls. It follows symlinks inside the container and locks
// it for as long as a stream lasts. So streams go through a spool, checked and within
// limits, and before something is written every directory on the way is looked at, with the
// container frozen if something may be running in it. A place that is to be fresh is
// emptied by the tool in the box, which follows no symlink.
//
// # Ownership
//
//	<dir>/boxes/<name>@<nonce>/   locked (flock) by the owner for as long as it lives
//	    owner.json                whose it is; written before anything is created
//	    kept.json                 that it was left on purpose, and how to go on with it
//	<dir>/box-<arch>-<digest>     the tool, mounted where the engine sees this directory
//
// The engine decides who gets a name. Where it is taken, the labels lead to the owner's
// record: locked is a conflict, a free lock means that the owner is dead, and what he left
// is removed by its id. An owner on another machine, or in files that can't be seen from
// here, can't be asked: he is taken for alive until his expiry. Networks and volumes carry
// the nonce of their sandbox and go with its container.
package docker
