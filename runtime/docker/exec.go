// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/runtime"
)

// Exec runs a program to its end.
//
// Its environment is the image's, then the spec's, then the command's; the engine adds
// PATH, HOME and HOSTNAME where nobody did. Output is read until every holder of a stream
// has closed it, or, where children live on, until the engine (2 s) or OutputGrace ends
// that. The engine knows exit codes only: a death by signal n is Code 128+n with no name,
// and can't be told from a program that exits with that code.
func (s *Sandbox) Exec(ctx context.Context, cmd runtime.Command) (runtime.Exit, error) {
	if err := s.enter(); err != nil {
		return runtime.Exit{}, err
	}
	defer s.leave()
	if err := firstOf(checkService(cmd.Service), checkUser(cmd.User)); err != nil {
		return runtime.Exit{}, err
	}
	ctx, unbind := s.bind(ctx)
	defer unbind()
	if ctx.Err() != nil {
		return runtime.Exit{}, context.Cause(ctx)
	}
	opts, err := s.options(cmd)
	if err != nil {
		return runtime.Exit{}, &runtime.StartError{Argv: cmd.Argv, Err: err}
	}
	exit, err := s.exec(ctx, cmd, opts)
	if errors.Is(err, errNoWorkdir) {
		// The sandbox's own programs removed it, and what they do to it is their result.
		if err := s.mendWorkdir(ctx); err != nil {
			return runtime.Exit{}, err
		}
		exit, err = s.exec(ctx, cmd, opts)
	}
	if errors.Is(err, errNoWorkdir) {
		err = &runtime.StartError{Argv: cmd.Argv, Err: err}
	}
	return exit, err
}

// options resolves what the command names.
func (s *Sandbox) options(cmd runtime.Command) (container.ExecOptions, error) {
	o := container.ExecOptions{
		User: s.user(cmd), Cmd: cmd.Argv, AttachStdin: cmd.Stdin != nil, AttachStdout: true, AttachStderr: true,
	}
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return o, errors.New("argv names no program")
	}
	for _, arg := range append(slices.Clone(cmd.Argv), cmd.Dir) {
		if strings.Contains(arg, "\x00") || !utf8.ValidString(arg) {
			return o, fmt.Errorf("%q has a NUL byte or isn't UTF-8, which the engine's API can't carry", arg)
		}
	}
	env := maps.Clone(s.spec.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, cmd.Env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(env[name], "\x00") || !utf8.ValidString(name+env[name]) {
			return o, fmt.Errorf("environment variable %q: a name isn't empty and has no '=', and it and its value are UTF-8 without a NUL byte", name)
		}
		o.Env = append(o.Env, name+"="+env[name])
	}
	switch dir := cmd.Dir; {
	case dir == "":
		o.WorkingDir = s.box.Workdir
	case path.IsAbs(dir):
		o.WorkingDir = dir
	default:
		rel, err := runtime.CleanPath(dir)
		if err != nil {
			return o, err
		}
		o.WorkingDir = path.Join(s.box.Workdir, rel)
	}
	return o, nil
}

func (s *Sandbox) exec(ctx context.Context, cmd runtime.Command, opts container.ExecOptions) (runtime.Exit, error) {
	room := s.room()
	c, err := s.begin(ctx, cmd, opts)
	if err != nil {
		return runtime.Exit{}, err
	}
	life, stop := context.WithCancel(context.Background())
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		c.follow(life, s.rt.watch)
	}()
	defer func() {
		stop()
		<-followed
		s.rt.watch.delist(c)
		s.mu.Lock()
		delete(s.running, c)
		s.mu.Unlock()
	}()
	return s.await(ctx, cmd, c, room)
}

// begin starts a command. When nobody knows whether it was started, everything that
// could be it is ended.
func (s *Sandbox) begin(ctx context.Context, cmd runtime.Command, opts container.ExecOptions) (*command, error) {
	c, err := s.tryBegin(ctx, opts)
	if err == nil {
		c.serve(cmd)
		return c, nil
	}
	if c == nil {
		return nil, s.lostOr(ctx, err)
	}
	s.rt.watch.delist(c)
	if s.life.Err() == nil {
		err = errors.Join(err, s.endCommand(ctx, c, false))
	}
	s.mu.Lock()
	delete(s.running, c)
	s.mu.Unlock()
	return nil, s.lostOr(ctx, err)
}

// tryBegin returns a command with an error when it may have been started.
func (s *Sandbox) tryBegin(ctx context.Context, opts container.ExecOptions) (*command, error) {
	s.power.RLock()
	defer s.power.RUnlock()
	e := s.rt.engine
	made, err := thawed(ctx, func() (container.ExecCreateResponse, error) {
		return quick(ctx, e, "create exec", func(ctx context.Context) (container.ExecCreateResponse, error) {
			return e.ContainerExecCreate(ctx, s.box.ID, opts)
		})
	})
	if err != nil {
		return nil, err
	}
	c := newCommand(e, s.box.ID, made.ID)
	s.rt.watch.enlist(c)
	s.mu.Lock()
	s.running[c] = struct{}{}
	s.dirty = true
	s.mu.Unlock()
	c.stream, err = thawed(ctx, func() (*stream, error) { return e.attach(ctx, made.ID) })
	if err == nil {
		return c, nil
	}
	notAsked := (*notAskedError)(nil)
	if isAnswer(err) || errors.As(err, &notAsked) {
		s.rt.watch.delist(c)
		s.mu.Lock()
		delete(s.running, c)
		s.mu.Unlock()
		return nil, err
	}
	return c, err
}

// A timer of a process that was stopped comes late, and with it what its commands did
// meanwhile. An agent that ended in time must not seem to have run out of it: whatever has
// happened gets a moment to be seen, and a longer one after a timer that is late.
const (
	seenIn   = 50 * time.Millisecond
	late     = 50 * time.Millisecond
	seenLate = time.Second
)

// toBeSeen is how long that moment is, after a wait of took for a timer of asked.
func toBeSeen(took, asked time.Duration) time.Duration {
	if took > asked+late {
		return seenLate
	}
	return seenIn
}

// await sees a command to its end.
func (s *Sandbox) await(ctx context.Context, cmd runtime.Command, c *command, room *pidsRoom) (runtime.Exit, error) {
	began := time.Now()
	var elapsed <-chan time.Time
	if cmd.Timeout > 0 {
		timer := time.NewTimer(cmd.Timeout)
		defer timer.Stop()
		elapsed = timer.C
	}
	select {
	case <-c.over:
		return s.ended(ctx, cmd, c, room)
	case <-ctx.Done():
	case <-elapsed:
		select {
		case <-c.over:
		case <-ctx.Done():
		case <-time.After(toBeSeen(time.Since(began), cmd.Timeout)):
		}
	}
	if c.isOver() { // it was quicker
		return s.ended(ctx, cmd, c, room)
	}
	cause := context.Cause(ctx)
	if s.life.Err() != nil { // what runs ends with the container
		c.finish(0)
		return runtime.Exit{}, fmt.Errorf("sandbox %s: %w", s.estate.Name, context.Cause(s.life))
	}
	err := s.endCommand(ctx, c, cause == nil)
	c.finish(s.rt.cfg.OutputGrace)
	switch {
	case err != nil && cause != nil:
		return runtime.Exit{}, errors.Join(cause, err)
	case err != nil:
		return runtime.Exit{}, err
	case cause != nil:
		return runtime.Exit{}, cause
	}
	return runtime.Exit{Code: killed, Signal: "SIGKILL", TimedOut: true}, errors.Join(c.keepErr, c.feedError())
}

// killed is the exit code of what died of SIGKILL.
const killed = 128 + 9

func (c *command) feedError() error {
	select {
	case <-c.fed:
		return c.feedErr
	default:
		return nil
	}
}
