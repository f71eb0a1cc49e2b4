// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience turns a hang into a failure.
const patience = 2 * time.Minute

// process is a program that a script started.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{}
}

// output collects what a program writes, and tells who waits.
type output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{} // closed and replaced with each write
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.buf.Write(p)
}

// look returns what was written, and a channel that closes when there is more.
func (o *output) look() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return o.buf.String(), o.more
}

type processesKey struct{}

type processes struct{ byName map[string]*process }

func newProcesses() *processes { return &processes{map[string]*process{}} }

func processOf(ts *testscript.TestScript, name string) *process {
	p, ok := ts.Value(processesKey{}).(*processes).byName[name]
	if !ok {
		ts.Fatalf("no process %s was started", name)
	}
	return p
}

func start(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "start NAME CMD ARG...")
	p := &process{cmd: exec.Command(args[1], args[2:]...), ended: make(chan struct{})}
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.Env = environ(ts)
	ts.Check(p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // finish looks at how it ended
	}()
	ts.Value(processesKey{}).(*processes).byName[args[0]] = p
	ts.Defer(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
}

// environ is the script's environment, as far as the programs need it.
func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "WORK", "GOCOVERDIR", "TIDEMILL_QUEUE", "TIDEMILL_STORE", "SOME_KEY",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_EC2_METADATA_DISABLED",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "await NAME PATTERN")
	p := processOf(ts, args[0])
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for last := false; ; {
		out, moreOut := p.stdout.look()
		err, moreErr := p.stderr.look()
		if pattern.MatchString(out) || pattern.MatchString(err) {
			return
		}
		if last {
			ts.Fatalf("%s ended without a match of %q; it wrote:\n%s%s", args[0], args[1], out, err)
		}
		select {
		case <-moreOut:
		case <-moreErr:
		case <-p.ended:
			last = true // look once more at all that it wrote
		case <-timeout.C:
			ts.Fatalf("%s had no match of %q in %s; it wrote:\n%s%s", args[0], args[1], patience, out, err)
		}
	}
}

func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "interrupt NAME")
	ts.Check(processOf(ts, args[0]).cmd.Process.Signal(os.Interrupt))
}

func kill9(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "kill9 NAME")
	p := processOf(ts, args[0])
	ts.Check(p.cmd.Process.Signal(syscall.SIGKILL))
	<-p.ended
}

func finish(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "finish NAME CODE")
	p := processOf(ts, args[0])
	select {
	case <-p.ended:
	case <-time.After(patience):
		out, _ := p.stdout.look()
		err, _ := p.stderr.look()
		ts.Fatalf("%s did not end in %s; it wrote:\n%s%s", args[0], patience, out, err)
	}
	out, _ := p.stdout.look()
	err, _ := p.stderr.look()
	_, _ = io.WriteString(ts.Stdout(), out)
	_, _ = io.WriteString(ts.Stderr(), err)
	if code := p.cmd.ProcessState.ExitCode(); strconv.Itoa(code) != args[1] {
		ts.Fatalf("%s ended with exit code %d, want %s; it wrote:\n%s%s", args[0], code, args[1], out, err)
	}
}

func awaitFile(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "await-file PATTERN")
	path := ts.MkAbs(args[0])
	// Another process makes the file; it can tell us in no other way.
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if found, _ := filepath.Glob(path); len(found) > 0 {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s is not there after %s", args[0], patience)
		}
	}
}

func setenvFrom(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "setenv-from VAR FILE")
	ts.Setenv(args[0], ts.ReadFile(args[1]))
}
