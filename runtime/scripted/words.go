// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

// maxRun is how deep a "run" may name another.
const maxRun = 8

var errNoStart = errors.New("it was not to start")

// read reads the instructions of a command. Everything is read before anything is
// carried out, so that a mistake is a program that can't be started.
func (c *call) read(texts []string, depth int) ([]step[*call], error) {
	var out []step[*call]
	for i, text := range texts {
		first, rest := word(text)
		switch {
		case text == "args" && depth == 0 && i == 0:
			return []step[*call]{printArgs(texts[1:])}, nil
		case first == "no-start":
			return nil, errNoStart
		case first == "run":
			inner, err := c.run(rest, depth)
			if err != nil {
				return nil, wrap(text, err)
			}
			out = append(out, inner...)
		case first == "background" || first == "leave-process" || first == "leave-daemon":
			s, err := c.background(first, rest, depth)
			if err != nil {
				return nil, wrap(text, err)
			}
			out = append(out, s)
		default:
			s, err := read(text, commandWords)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// run reads the instructions that a file has.
func (c *call) run(rest string, depth int) ([]step[*call], error) {
	if depth == maxRun {
		return nil, fmt.Errorf("is nested more than %d deep", maxRun)
	}
	args, err := fields(rest, 1)
	if err != nil {
		return nil, err
	}
	file, key, _ := strings.Cut(args[0], "#")
	n, err := c.sb.box.fs.read(c.user, c.path(file))
	if err != nil {
		return nil, err
	}
	texts, err := lookup(n.data, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c.read(texts, depth+1)
}

// background reads an instruction that leaves a process behind.
func (c *call) background(first, rest string, depth int) (step[*call], error) {
	texts, pidFile := []string{"hold"}, ""
	var err error
	switch {
	case first == "background":
		texts, err = list(rest)
	case rest != "":
		var args []string
		if args, err = fields(rest, 1); err == nil {
			pidFile = args[0]
		}
	}
	if err != nil {
		return nil, err
	}
	steps, err := c.read(texts, max(depth, 1))
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, c *call) error {
		ctx, cancel := context.WithCancelCause(c.sb.box.ctx)
		child := *c
		child.stdin, child.stdout, child.stderr = nil, io.Discard, io.Discard
		child.proc = c.sb.box.begin(c.proc, first == "leave-daemon", cancel)
		go func() { // owned by the box, which waits for proc.done
			defer c.sb.box.finish(child.proc)
			defer cancel(nil)
			_ = play(ctx, steps, &child) // how it ends is of no interest to anyone
		}()
		if pidFile == "" {
			return nil
		}
		return c.write(pidFile, fmt.Appendln(nil, child.proc.pid), false)
	}, nil
}

func printArgs(args []string) step[*call] {
	return func(_ context.Context, c *call) error {
		for _, arg := range args {
			if _, err := io.WriteString(c.stdout, arg+"\x00"); err != nil {
				return err
			}
		}
		return nil
	}
}

// say is an instruction that prints a text.
func say(end string, stream func(*call) io.Writer) func(string) (step[*call], error) {
	return func(rest string) (step[*call], error) {
		text, err := literal(rest)
		return func(_ context.Context, c *call) error {
			_, err := io.WriteString(stream(c), text+end)
			return err
		}, err
	}
}

func toStdout(c *call) io.Writer { return c.stdout }
func toStderr(c *call) io.Writer { return c.stderr }

// ask is an instruction without arguments that prints something.
func ask(answer func(*call) string) func(string) (step[*call], error) {
	return plain(func(_ context.Context, c *call) error {
		_, err := io.WriteString(c.stdout, answer(c))
		return err
	})
}

// plain is an instruction without arguments.
func plain(do step[*call]) func(string) (step[*call], error) {
	return func(rest string) (step[*call], error) {
		_, err := fields(rest, 0)
		return do, err
	}
}

// withArgs is an instruction with n arguments.
func withArgs(n int, do func(ctx context.Context, c *call, args []string) error) func(string) (step[*call], error) {
	return func(rest string) (step[*call], error) {
		args, err := fields(rest, n)
		return func(ctx context.Context, c *call) error { return do(ctx, c, args) }, err
	}
}

// withNumber is an instruction whose only argument is a number.
func withNumber(do func(ctx context.Context, c *call, n int) error) func(string) (step[*call], error) {
	return func(rest string) (step[*call], error) {
		n, err := number(rest)
		return func(ctx context.Context, c *call) error { return do(ctx, c, n) }, err
	}
}

// commandWords are the instructions of commands, beside the shared ones and those of
// call.read.
var commandWords = func() words[*call] {
	all := words[*call]{}
	for _, group := range []words[*call]{talkWords, fileWords, endingWords, networkWords} {
		maps.Copy(all, group)
	}
	return all
}()

var talkWords = words[*call]{
	"print":    say("\n", toStdout),
	"warn":     say("\n", toStderr),
	"emit":     say("", toStdout),
	"emit-err": say("", toStderr),
	"cat":      plain(cat),
	"flood": withNumber(func(ctx context.Context, c *call, kib int) error {
		block := bytes.Repeat([]byte("0123456789abcdef"), 64)
		for i := 0; i < kib && ctx.Err() == nil; i++ {
			for _, w := range []io.Writer{c.stdout, c.stderr} {
				if _, err := w.Write(block); err != nil {
					return err
				}
			}
		}
		return context.Cause(ctx)
	}),
	"env": ask(func(c *call) string {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(c.env)) {
			fmt.Fprintf(&b, "%s=%s\n", name, c.env[name])
		}
		return b.String()
	}),
	"echo-env": withArgs(1, func(_ context.Context, c *call, args []string) error {
		_, err := fmt.Fprintln(c.stdout, c.env[args[0]])
		return err
	}),
	"pwd":    ask(func(c *call) string { return c.dir + "\n" }),
	"whoami": ask(func(c *call) string { return c.user + "\n" }),
	"phase": ask(func(c *call) string {
		phase, policy := c.situation()
		return fmt.Sprintln(phase, policy)
	}),
	"ignore-term": plain(func(context.Context, *call) error { return nil }), // nobody here sends it
	"hold":        plain(func(ctx context.Context, _ *call) error { <-ctx.Done(); return context.Cause(ctx) }),
}

// situation is the phase and the network policy that are in force.
func (c *call) situation() (runtime.Phase, runtime.NetworkPolicy) {
	c.sb.box.mu.Lock()
	defer c.sb.box.mu.Unlock()
	n, _ := c.sb.box.spec.NetworkFor(c.sb.box.phase)
	return c.sb.box.phase, n.Policy
}

// cat copies stdin. The goroutine that reads it ends when the reader returns: no
// reader can be interrupted, and a program doesn't wait for its stdin to end.
func cat(ctx context.Context, c *call) error {
	if c.stdin == nil {
		return nil
	}
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, c.stdin)
		w.CloseWithError(err)
	}()
	defer context.AfterFunc(ctx, func() { r.CloseWithError(context.Cause(ctx)) })()
	_, err := io.Copy(c.stdout, r)
	return errors.Join(err, r.Close())
}
