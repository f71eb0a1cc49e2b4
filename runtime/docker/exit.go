// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// ended makes the result of a command that is over.
func (s *Sandbox) ended(ctx context.Context, cmd runtime.Command, c *command, room *pidsRoom) (runtime.Exit, error) {
	c.finish(s.rt.cfg.OutputGrace)
	if c.err != nil {
		if errors.Is(c.err, errCut) && s.life.Err() == nil {
			c.err = errors.Join(c.err, s.endCommand(context.WithoutCancel(ctx), c, false))
		}
		return runtime.Exit{}, s.lostOr(context.WithoutCancel(ctx), c.err)
	}
	if c.info.Pid != 0 && (c.outErr != nil || !s.rt.watch.outlived(c)) {
		// Its streams were cut off and it ended, maybe of that.
		return runtime.Exit{}, s.lostOr(context.WithoutCancel(ctx), errCut)
	}
	s.mu.Lock()
	beside := c.beside
	s.mu.Unlock()
	if beside {
		return runtime.Exit{}, fmt.Errorf("sandbox %s: %w", s.estate.Name, errBeside)
	}
	if c.info.Pid == 0 {
		return s.notStarted(ctx, cmd, string(c.unsaid))
	}
	if len(c.unsaid) > 0 { // it was the program's own text
		_ = c.first.release()
	}
	exit := runtime.Exit{Code: c.info.ExitCode}
	if exit.Code == killed {
		if err := s.outlived(ctx); err != nil {
			return runtime.Exit{}, err
		}
	}
	if exit.Code != 0 {
		exit.Exhausted = s.exhausted(c, room)
	}
	return exit, errors.Join(c.keepErr, c.feedError())
}

// outlived tells whether the container outlived a command that was killed. The engine
// tells of the end of commands before it tells of the end of the container that they died
// with, by no more than the time that it takes to write that down.
func (s *Sandbox) outlived(ctx context.Context) error {
	const settle = 200 * time.Millisecond
	ctx = context.WithoutCancel(ctx)
	s.power.RLock()
	defer s.power.RUnlock()
	if err := s.alive(ctx); err != nil {
		return err
	}
	t := time.NewTimer(settle)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.life.Done():
	}
	return s.alive(ctx)
}

var (
	errBeside    = errors.New("everything in it was ended, because a command beside this one had to be and can't be told apart from here")
	errNoWorkdir = errors.New("the workdir is no directory any more")
)

// theProgram is in the texts about what the task's author got wrong.
var theProgram = regexp.MustCompile(`exec: "|exec user process|chdir to cwd|exec format error|argument list too long|executable file not found`)

// notStarted tells whose fault it is that a program couldn't be started: ours, unless the
// text is about the program, its directory or its user, or about the box being full.
func (s *Sandbox) notStarted(ctx context.Context, cmd runtime.Command, text string) (runtime.Exit, error) {
	const cantExecute = 126 // as a shell says it
	text = strings.TrimSpace(text)
	limits := s.spec.Resources
	switch {
	case strings.Contains(text, "unable to find user"), strings.Contains(text, "unable to find group"),
		strings.Contains(text, "no matching entries in"):
		return runtime.Exit{}, refuse("user", s.user(cmd), "one of the sandbox's /etc/passwd", "a number")
	case limits.Pids > 0 && strings.Contains(text, "resource temporarily unavailable"):
		return runtime.Exit{Code: cantExecute, Exhausted: runtime.OutOfPids}, nil
	case limits.Memory > 0 && strings.Contains(text, "cannot allocate memory"):
		return runtime.Exit{Code: cantExecute, Exhausted: runtime.OutOfMemory}, nil
	case strings.Contains(text, "chdir to cwd") && cmd.Dir == "":
		return runtime.Exit{}, errNoWorkdir
	case theProgram.MatchString(text):
		return runtime.Exit{}, &runtime.StartError{Argv: cmd.Argv, Err: errors.New(reason(text))}
	}
	if text == "" {
		text = "the engine says no more"
	}
	return runtime.Exit{}, s.lostOr(ctx, fmt.Errorf("sandbox %s: start %q: %s", s.estate.Name, cmd.Argv[0], text))
}

// reason leaves out what all of the engine's texts have in common.
func reason(text string) string {
	text = strings.TrimPrefix(text, "OCI runtime exec failed: exec failed: ")
	text = strings.TrimPrefix(text, "unable to start container process: ")
	return strings.TrimSuffix(text, ": unknown")
}
