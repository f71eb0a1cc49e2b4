// SPDX-License-Identifier: Apache-2.0

package runtimetest

// Programs makes the programs that the suite runs inside a sandbox.
type Programs interface {
	// Program returns the argument vector of a program that takes the steps one after
	// another and then exits with 0. A step that fails ends it with another code.
	Program(steps ...Step) []string
	// Args returns the argument vector of a program that gets args as they are and
	// prints each with a NUL byte behind it.
	Args(args ...string) []string
}

// Op is what a [Step] does.
type Op string

// Step is one thing that a program of the suite does. Paths are relative to the
// command's directory or absolute as programs inside see them.
type Step struct {
	Op   Op
	Path string // or a variable's name, or a URL
	To   string // target of a link, new name
	Data []byte
	N    int
}

// The operations; each has a constructor that says what it means.
const (
	OpOut        Op = "out"
	OpErr        Op = "err"
	OpFlood      Op = "flood"
	OpCat        Op = "cat"
	OpExit       Op = "exit"
	OpDie        Op = "die"
	OpHold       Op = "hold"
	OpEnv        Op = "env"
	OpEcho       Op = "echo"
	OpPwd        Op = "pwd"
	OpUser       Op = "user"
	OpRead       Op = "read"
	OpWrite      Op = "write"
	OpMkdir      Op = "mkdir"
	OpSymlink    Op = "symlink"
	OpFifo       Op = "fifo"
	OpRename     Op = "rename"
	OpChild      Op = "child"
	OpLoud       Op = "loud"
	OpDaemon     Op = "daemon"
	OpAlive      Op = "alive"
	OpFetch      Op = "fetch"
	OpIgnoreTerm Op = "ignore-term"
)

// Out writes bytes to stdout as they are.
func Out(data string) Step { return Step{Op: OpOut, Data: []byte(data)} }

// Err writes bytes to stderr as they are.
func Err(data string) Step { return Step{Op: OpErr, Data: []byte(data)} }

// Flood writes n KiB of any bytes to each of stdout and stderr, in turns of 64 KiB;
// n is a multiple of 64.
func Flood(n int) Step { return Step{Op: OpFlood, N: n} }

// Cat copies stdin to stdout until its end.
func Cat() Step { return Step{Op: OpCat} }

// Exit ends the program with a code.
func Exit(code int) Step { return Step{Op: OpExit, N: code} }

// Die makes the program kill itself with a signal.
func Die(signal int) Step { return Step{Op: OpDie, N: signal} }

// Hold waits for ever.
func Hold() Step { return Step{Op: OpHold} }

// IgnoreTerm makes the program and its later children ignore SIGTERM.
func IgnoreTerm() Step { return Step{Op: OpIgnoreTerm} }

// Env prints the environment, "NAME=value" a line.
func Env() Step { return Step{Op: OpEnv} }

// Echo prints the value of a variable and a newline.
func Echo(name string) Step { return Step{Op: OpEcho, Path: name} }

// Pwd prints the current directory, without symlinks, and a newline.
func Pwd() Step { return Step{Op: OpPwd} }

// User prints the user's name and a newline.
func User() Step { return Step{Op: OpUser} }

// Read prints the content of a file, following symlinks.
func Read(path string) Step { return Step{Op: OpRead, Path: path} }

// Write writes a file; its directory exists.
func Write(path, data string) Step { return Step{Op: OpWrite, Path: path, Data: []byte(data)} }

// Mkdir makes a directory and its parents.
func Mkdir(path string) Step { return Step{Op: OpMkdir, Path: path} }

// Symlink makes a symlink at path that points to target.
func Symlink(target, path string) Step { return Step{Op: OpSymlink, To: target, Path: path} }

// Fifo makes a named pipe.
func Fifo(path string) Step { return Step{Op: OpFifo, Path: path} }

// Rename moves a file or directory.
func Rename(from, to string) Step { return Step{Op: OpRename, Path: from, To: to} }

// Child leaves a process behind, in the program's process group and without its
// streams, that waits for ever. Its id goes into a file.
func Child(pidFile string) Step { return Step{Op: OpChild, Path: pidFile} }

// Loud is a Child that keeps the program's stdout and stderr open.
func Loud(pidFile string) Step { return Step{Op: OpLoud, Path: pidFile} }

// Daemon is a Child in a session of its own.
func Daemon(pidFile string) Step { return Step{Op: OpDaemon, Path: pidFile} }

// Alive prints "alive" or "dead" and a newline for the process whose id is in the
// file. A zombie is dead.
func Alive(pidFile string) Step { return Step{Op: OpAlive, Path: pidFile} }

// Fetch prints the body of an HTTP GET.
func Fetch(url string) Step { return Step{Op: OpFetch, Path: url} }
