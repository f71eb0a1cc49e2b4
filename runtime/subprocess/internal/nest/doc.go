// SPDX-License-Identifier: Apache-2.0

// Package nest gives every sandbox namespaces of its own: processes that can't
// outlive it, files of the host that it can't see or change, and, where asked, a
// network that leads nowhere.
//
// # Warden
//
// Namespaces belong to threads, and some of them can't be entered by a program with
// several threads at all. So the worker starts one helper, the warden: this same
// binary, executed again, with next to nothing in memory. Programs that use the
// package call [Main] first thing in main (tests: in TestMain); in the warden it never
// returns. Nothing happens at package initialisation. Without the hook [Start]
// refuses: the binary that it would execute would be something else.
//
// The warden holds one thread for each nest. The thread enters the new namespaces,
// mounts what the nest shows, gives up its privileges, and starts all commands of the
// nest, which inherit what it is. A worker talks to it over a socket; that socket is
// the nest's life. When it is closed, because the nest was, or the worker died in
// whatever way, the thread kills the nest. When the warden dies, parent death signals
// do.
//
// # Init
//
// The first process of a PID namespace is its init: when it dies the kernel kills
// whatever is in the namespace, in one step, and setsid, double forks and ignored
// signals don't help. Ours is two hundred bytes of machine code (init_linux_*.s). It
// mounts /proc, reaps orphans by ignoring their death, and kills everything but itself
// on request, which the kernel does in one step too.
//
// # What is seen
//
// A [View] is a mount namespace that is built once and copied for each nest: the host's
// files, read-only and without devices; directories that are hidden, with what is to be
// seen in them nevertheless; a small /dev; sockets of the host's services covered up. A
// nest adds what is its own: its directories, /tmp, /dev/shm, /dev/pts, /proc. The last is
// read-only: so the kernel's settings can't be changed by a root without capabilities,
// and sandboxes inside the sandbox, which write a user map, don't work.
//
// Programs keep the user they run as, and, where that is root, what root may do with
// its own files. Everything that reaches beyond them is dropped from the capability
// bounding set, and no_new_privs is set.
//
// # Without root
//
// The warden gets a user namespace in which it may do all this, if the kernel lets
// ordinary users have one, with the user's own id and no other.
//
// # Limits
//
// Memory and processes are bounded by control groups, version 1 or 2, where there are
// any that the warden may write; disk by a tmpfs of a fixed size, which exists in the
// nest only and is gone with it; open files and the size of one file by rlimits. What
// can't be had is refused with a [LimitError].
package nest
