// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"io"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// logFile is a framed log of the bundle, with secrets redacted before framing: frames
// could cut a value in two.
type logFile struct {
	file           io.WriteCloser
	log            *bundle.Log
	stdout, stderr io.WriteCloser
}

// log opens a log of the attempt when it is first needed.
func (a *attempt) log(into **logFile, name string) (*logFile, *failure) {
	if *into != nil {
		return *into, nil
	}
	file, err := a.Files.Create(name)
	if err != nil {
		return nil, &failure{ending: InfraFailed, phase: PhaseCollect, detail: err.Error()}
	}
	l := bundle.NewLog(file, bundle.LogOptions{
		Cap: int64(a.Run.Run.Capture.MaxLogBytes),
		Now: func() time.Duration { return time.Since(a.started) },
	})
	*into = &logFile{file: file, log: l, stdout: a.redact.Writer(l.Stdout()), stderr: a.redact.Writer(l.Stderr())}
	return *into, nil
}

// closeLogs ends both logs; a bundle can't be sealed over open files.
func (a *attempt) closeLogs() {
	for _, l := range []*logFile{a.agentLog, a.gradeLog} {
		if l == nil {
			continue
		}
		for _, c := range []io.Closer{l.stdout, l.stderr, l.log, l.file} {
			if err := c.Close(); err != nil {
				a.problems = append(a.problems, err)
			}
		}
	}
	if a.agentLog != nil {
		out, errs := a.agentLog.log.Bytes()
		a.metrics.AgentOutputBytes = out + errs
	}
}

// exec runs a program of a phase with its output in a log.
func (a *attempt) exec(ctx context.Context, log *logFile, phase runtime.Phase, p manifest.Program, env map[string]string, timeout time.Duration) (runtime.Exit, error) {
	if p.User == "" {
		p.User = a.Task.Users[string(phase)]
	}
	exit, err := a.box.Exec(ctx, runtime.Command{
		Argv: expandArgv(p.Command, env), Env: env, User: p.User,
		Stdout: log.stdout, Stderr: log.stderr, Timeout: timeout,
	})
	switch {
	case err != nil:
		log.log.Note(a.redact.String(string(phase) + ": " + err.Error()))
	case !exit.OK():
		log.log.Note(string(phase) + " " + describe(exit))
	}
	return exit, err
}
