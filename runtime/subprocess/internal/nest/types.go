// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"syscall"
	"time"
)

// Config is how a warden is started.
type Config struct {
	// Cgroup is a directory of a cgroup version 2 hierarchy below which the nests' groups
	// are made. Default: the worker's own group, or its parent. Version 1 always uses the
	// worker's own groups.
	Cgroup string
	// Patience is how long the warden may take to start, and to end. Default 10 s.
	Patience time.Duration
}

// View is what nests see of the host's files. Paths are absolute and without symlinks.
type View struct {
	// Root is the directory that holds the directories of all nests. Each sees its own
	// and no other's.
	Root string
	// Hide are directories that are empty in the nest. Those that don't exist are
	// skipped.
	Hide []string
	// Show are files and directories inside hidden ones that are seen nevertheless,
	// read-only.
	Show []string
	// Links are symlinks inside hidden directories, with their targets.
	Links map[string]string
}

// Spec is one nest.
type Spec struct {
	// Name is what the nest's control groups are called.
	Name string
	// View is what it sees of the host. Nests with the same one, by its address, copy what
	// was built once, and goes only with the warden.
	View *View `json:"-"`
	// Dirs are the directories that are the nest's own: they exist, lie directly in
	// View.Root, or deeper, and are writable.
	Dirs []string
	// Tmp is what /tmp and /var/tmp are: a directory in one of Dirs.
	Tmp string
	// Cover are files in Dirs that the nest can't read or change; an empty one that
	// nobody may read is in their place.
	Cover []string
	// Offline gives the nest a network with nothing but a loopback. With AlsoOnline,
	// commands can still be run in the host's.
	Offline    bool
	AlsoOnline bool
	// Limits of the nest; zero means none.
	Memory int64 // bytes
	Pids   int64
	Disk   int64 // bytes of all Dirs together; they are then in memory, and start empty
	Shm    int64 // bytes of /dev/shm; default 64 MiB
}

// Command is a program to run.
type Command struct {
	Argv []string // Argv[0] is looked up in PATH, as the nest sees it
	// Online runs it in the host's network although the nest is Offline, if it is
	// AlsoOnline.
	Online bool
	Env    []string
	Path   string // the PATH to look in
	Dir    string // absolute
	// Files are the descriptors of its standard streams. They stay the caller's to close.
	Files [3]int
	// Limits for each process; zero means none.
	OpenFiles int64
	FileSize  int64
}

// Status is how a command ended.
type Status struct {
	Wait syscall.WaitStatus
	// OOM: a process of the nest was killed for lack of memory while the command ran.
	OOM bool
	// Pids: a process could not be started for the limit while the command ran.
	Pids bool
	// Full: the nest's disk was full when the command ended.
	Full bool
}

// Look asks what can be reached, as a command of the nest could.
type Look struct {
	Dial  []string // "tcp:127.0.0.1:80", "unix:/run/x.sock", "unix:@abstract"
	Read  []string // files to open, directories to list
	Write []string // files to open for writing; nothing is written
}

// Seen answers a Look, in its order: nil for what worked.
type Seen struct {
	Dial, Read, Write []error
	// Entries are how many entries each directory of Read has, or -1.
	Entries []int
}

// Report is what works on this machine: nil for what does, else why not.
type Report struct {
	Nests   error // all of the following is nothing without it
	Hides   error // the host's files are hidden or read-only
	Offline error // nothing outside can be reached
	Memory  error
	Pids    error
	Disk    error
}

func failed(err error) Report { return Report{err, err, err, err, err, err} }
