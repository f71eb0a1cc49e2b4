// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

// call is a command that runs.
type call struct {
	sb             *sandbox
	proc           *proc
	service        string
	argv           []string
	env            map[string]string
	dir, user      string
	stdin          io.Reader
	stdout, stderr io.Writer
}

func (c *call) scope() scope {
	return scope{rt: c.sb.rt, name: c.sb.box.name, attempt: c.sb.box.spec.Labels.Attempt, box: c.sb.box}
}

// path finds a file of an instruction: absolute, below a place that is named by the
// first part, or below the command's directory.
func (c *call) path(p string) string {
	p = expand(p, c.env)
	if strings.HasPrefix(p, "/") {
		return p
	}
	first, rest, _ := strings.Cut(p, "/")
	if _, ok := places[runtime.Place(first)]; ok {
		return c.sb.box.path(runtime.Place(first)) + "/" + rest
	}
	return c.dir + "/" + p
}

// ended is how an instruction ends its program.
type ended struct{ exit runtime.Exit }

func (e *ended) Error() string { return fmt.Sprintf("exit %d", e.exit.Code) }

// trouble is an error of the runtime, on request.
type trouble struct{ text string }

func (e *trouble) Error() string { return e.text }

// Exec implements [runtime.Sandbox]: it carries out the instructions of cmd.Argv.
func (s *sandbox) Exec(ctx context.Context, cmd runtime.Command) (runtime.Exit, error) {
	if err := s.usable(ctx); err != nil {
		return runtime.Exit{}, err
	}
	c, err := s.call(cmd)
	if err != nil {
		return runtime.Exit{}, err
	}
	argv, depth := c.argv, 0
	texts, ok, err := c.script(argv)
	if ok {
		argv, depth = texts, 1
	}
	var steps []step[*call]
	if err == nil {
		steps, err = c.read(argv, depth)
	}
	if err != nil {
		return runtime.Exit{}, &runtime.StartError{Argv: cmd.Argv, Err: err}
	}

	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.box.ctx, func() { cancel(context.Cause(s.box.ctx)) })()
	running, stop := withTimeout(running, s.rt.cfg.Clock, cmd.Timeout, errTimedOut)
	defer stop()
	c.proc = s.box.begin(nil, false, cancel)
	defer s.box.finish(c.proc)

	err = play(running, steps, c)
	var end *ended
	var bad *trouble
	switch {
	case err == nil:
		return runtime.Exit{}, nil
	case errors.As(err, &end):
		return end.exit, nil
	case errors.As(err, &bad):
		return runtime.Exit{}, fmt.Errorf("exec in %s: %w", s.box.name, bad)
	case running.Err() == nil:
		return c.fail(err), nil
	}

	if err := s.killGroup(ctx, c.proc); err != nil {
		return runtime.Exit{}, err
	}
	cause := context.Cause(running)
	if errors.Is(cause, errTimedOut) {
		return runtime.Exit{Code: 128 + 9, Signal: "SIGKILL", TimedOut: true}, nil
	}
	return runtime.Exit{}, fmt.Errorf("exec in %s: %w", s.box.name, cause)
}

// killGroup ends what a killed command left in its process group.
func (s *sandbox) killGroup(ctx context.Context, p *proc) error {
	return s.box.kill(context.WithoutCancel(ctx), func(q *proc) bool { return q.left && !q.daemon && q.group == p.group })
}

// fail is a program that met an error: it says so on stderr and exits with 1.
func (c *call) fail(err error) runtime.Exit {
	_, _ = fmt.Fprintln(c.stderr, err)
	exit := runtime.Exit{Code: 1}
	if errors.Is(err, errNoSpace) {
		exit.Exhausted = runtime.OutOfDisk
	}
	return exit
}

// call checks a command and completes it.
func (s *sandbox) call(cmd runtime.Command) (*call, error) {
	b := s.box
	if cmd.User != "" && !s.rt.props.Users {
		return nil, s.rt.unsupported("user", cmd.User)
	}
	known := func(v runtime.Service) bool { return v.Name == cmd.Service }
	if cmd.Service != "" && !slices.ContainsFunc(b.spec.Services, known) {
		return nil, fmt.Errorf("exec in %s: there is no service %q", b.name, cmd.Service)
	}
	if len(cmd.Argv) == 0 {
		return nil, &runtime.StartError{Err: errors.New("there is no program in argv")}
	}
	b.mu.Lock()
	phaseUser := b.spec.Users[b.phase]
	b.mu.Unlock()
	c := &call{
		sb: s, service: cmp.Or(cmd.Service, b.spec.Runner), argv: cmd.Argv, user: cmp.Or(cmd.User, phaseUser, "user"),
		env: map[string]string{"PATH": "/bin", "HOME": "/"}, stdin: cmd.Stdin, stdout: cmd.Stdout, stderr: cmd.Stderr,
	}
	maps.Copy(c.env, b.spec.Env)
	maps.Copy(c.env, cmd.Env)
	if c.stdout == nil {
		c.stdout = io.Discard
	}
	if c.stderr == nil {
		c.stderr = io.Discard
	}
	c.dir = cmd.Dir
	if !strings.HasPrefix(c.dir, "/") {
		c.dir = path.Join(b.path(runtime.Workdir), c.dir)
	}
	if err := b.fs.isDir(c.user, c.dir); err != nil {
		return nil, &runtime.StartError{Argv: cmd.Argv, Err: fmt.Errorf("directory %w", err)}
	}
	return c, nil
}
