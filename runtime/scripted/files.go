// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

func (c *call) write(file string, data []byte, more bool) error {
	return c.sb.box.fs.write(c.user, c.path(file), data, more)
}

// saves is an instruction that writes a text to a file.
func saves(more bool) func(string) (step[*call], error) {
	return func(rest string) (step[*call], error) {
		file, text, err := field(rest)
		if err != nil {
			return nil, err
		}
		text, err = literal(text)
		return func(_ context.Context, c *call) error { return c.write(file, []byte(text), more) }, err
	}
}

// fileWords are the instructions that touch files.
var fileWords = words[*call]{
	"write":  saves(false),
	"append": saves(true),
	"nan": plain(func(_ context.Context, c *call) error {
		return c.write("verifier/reward.txt", []byte("NaN\n"), false)
	}),
	"big-file": withArgs(2, func(_ context.Context, c *call, args []string) error {
		size, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || size < 0 {
			return fmt.Errorf("big-file %s: %q: want a size in bytes", args[0], args[1])
		}
		return c.sb.box.fs.create(c.user, c.path(args[0]), &node{zeros: size})
	}),
	"read": withArgs(1, func(_ context.Context, c *call, args []string) error {
		n, err := c.sb.box.fs.read(c.user, c.path(args[0]))
		if err != nil {
			return err
		}
		_, err = io.Copy(c.stdout, n.content())
		return err
	}),
	"copy": withArgs(2, func(_ context.Context, c *call, args []string) error {
		n, err := c.sb.box.fs.read(c.user, c.path(args[0]))
		if err != nil {
			return err
		}
		return c.write(args[1], n.data, false)
	}),
	"judge": judge,
	"mkdir": withArgs(1, func(_ context.Context, c *call, args []string) error {
		return c.sb.box.fs.mkdirAll(c.user, c.path(args[0]))
	}),
	"symlink": withArgs(2, func(_ context.Context, c *call, args []string) error {
		return c.sb.box.fs.create(c.user, c.path(args[1]), &node{kind: symlink, target: expand(args[0], c.env)})
	}),
	"fifo": withArgs(1, func(_ context.Context, c *call, args []string) error {
		return c.sb.box.fs.create(c.user, c.path(args[0]), &node{kind: fifo})
	}),
	"rename": withArgs(2, func(_ context.Context, c *call, args []string) error {
		return c.sb.box.fs.rename(c.user, c.path(args[0]), c.path(args[1]))
	}),
	"remove": withArgs(1, func(_ context.Context, c *call, args []string) error {
		return c.sb.box.fs.remove(c.user, c.path(args[0]))
	}),
	"require-file": withArgs(1, func(_ context.Context, c *call, args []string) error {
		_, err := c.sb.box.fs.read(c.user, c.path(args[0]))
		return err
	}),
	"require-no-file": withArgs(1, func(_ context.Context, c *call, args []string) error {
		path := c.path(args[0])
		switch _, err := c.sb.box.fs.read(c.user, path); {
		case errors.Is(err, errNoEntry) || errors.Is(err, errPermission):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%s: is there and should not be", path)
	}),
	"alive": withArgs(1, func(_ context.Context, c *call, args []string) error {
		n, err := c.sb.box.fs.read(c.user, c.path(args[0]))
		if err != nil {
			return err
		}
		pid, err := number(strings.TrimSpace(string(n.data)))
		if err != nil {
			return err
		}
		state := "dead"
		if len(c.sb.box.selected(func(p *proc) bool { return p.pid == pid })) > 0 {
			state = "alive"
		}
		_, err = fmt.Fprintln(c.stdout, state)
		return err
	}),
}

// judge is a grader in one instruction: the reward is 1 if a file has a text, white
// space at its ends aside, else 0.
func judge(rest string) (step[*call], error) {
	file, want, err := field(rest)
	if err != nil {
		return nil, err
	}
	want, err = literal(want)
	return func(_ context.Context, c *call) error {
		reward := "0"
		n, err := c.sb.box.fs.read(c.user, c.path(file))
		if err == nil && strings.TrimSpace(string(n.data)) == strings.TrimSpace(want) {
			reward = "1"
		}
		return c.write("verifier/reward.txt", []byte(reward+"\n"), false)
	}, err
}

// fill uses up what is left of the disk; where there is no limit, the disk ends here.
func (f *memfs) fill(dir, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.strict(dir, true)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if d.kind != directory {
		return fmt.Errorf("%s: %w", dir, errNotDir)
	}
	delete(d.entries, name)
	used := f.root.usage()
	if f.limit == 0 {
		f.limit = used + 1<<30
	}
	d.entries[name] = &node{zeros: f.limit - used}
	return nil
}
