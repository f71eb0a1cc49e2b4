// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// logFile is a framed log of the bundle.
type logFile struct {
	file io.WriteCloser
	log  *bundle.Log
}

// log opens a log of the attempt when it is first needed.
func (a *attempt) log(phase string, into **logFile, name string) (*logFile, *failure) {
	if *into != nil {
		return *into, nil
	}
	file, err := a.Files.Create(name)
	if err != nil {
		return nil, &failure{ending: InfraFailed, phase: phase, detail: err.Error()}
	}
	*into = &logFile{file: file, log: bundle.NewLog(file, bundle.LogOptions{
		Cap: int64(a.Run.Run.Capture.MaxLogBytes),
		Now: func() time.Duration { return time.Since(a.started) },
	})}
	return *into, nil
}

// bytes is how much was written to the log, kept or not.
func (l *logFile) bytes() int64 {
	stdout, stderr := l.log.Bytes()
	return stdout + stderr
}

// closeLogs ends both logs; a bundle can't be sealed over open files.
func (a *attempt) closeLogs() error {
	var errs []error
	for _, l := range []*logFile{a.agentLog, a.gradeLog} {
		if l != nil {
			errs = append(errs, l.log.Close(), l.file.Close())
		}
	}
	a.agentLog, a.gradeLog = nil, nil
	return errors.Join(errs...)
}

// exec runs a program of a phase with its output in a log. A program that ended badly
// because its sandbox died is an error.
func (a *attempt) exec(ctx context.Context, log *logFile, phase runtime.Phase, p manifest.Program, env map[string]string, timeout time.Duration) (runtime.Exit, error) {
	if p.User == "" {
		p.User = a.Task.Users[string(phase)]
	}
	// Redacted before it is framed: a frame could cut a value in two.
	stdout, stderr := a.redact.Writer(log.log.Stdout()), a.redact.Writer(log.log.Stderr())
	exit, err := a.box.Exec(ctx, runtime.Command{
		Argv: expandArgv(p.Command, env), Env: env, User: p.User,
		Stdout: stdout, Stderr: stderr, Timeout: timeout,
	})
	// The log is open and takes everything; its errors come when it is closed.
	_, _ = stdout.Close(), stderr.Close()
	if err == nil && !exit.OK() && exit.Exhausted == "" && a.lost(ctx) {
		err = fmt.Errorf("the sandbox died while the %s program ran: %w", phase, runtime.ErrLost)
	}
	switch {
	case err != nil:
		log.log.Note(a.text(string(phase) + ": " + err.Error()))
	case !exit.OK():
		log.log.Note(string(phase) + " " + describe(exit))
	}
	return exit, err
}
