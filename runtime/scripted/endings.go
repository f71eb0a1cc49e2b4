// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// endingWords are the ways in which a program, or its sandbox, comes to an end.
var endingWords = words[*call]{
	"exit": withNumber(func(_ context.Context, _ *call, code int) error {
		return &ended{runtime.Exit{Code: code & 0xff}}
	}),
	"kill": func(rest string) (step[*call], error) {
		n, err := number(rest)
		name := unix.SignalName(unix.Signal(n))
		if err == nil && name == "" {
			err = fmt.Errorf("there is no signal %d", n)
		}
		return func(context.Context, *call) error { return &ended{runtime.Exit{Code: 128 + n, Signal: name}} }, err
	},
	"oom":       exhausted(runtime.OutOfMemory, runtime.Exit{Code: 128 + 9, Signal: "SIGKILL"}, "out of memory"),
	"fork-bomb": exhausted(runtime.OutOfPids, runtime.Exit{Code: 1}, "fork: resource temporarily unavailable"),
	"fill-disk": exhausted(runtime.OutOfDisk, runtime.Exit{Code: 1}, errNoSpace.Error()),
	"lose-sandbox": plain(func(ctx context.Context, c *call) error {
		c.sb.box.end(runtime.ErrLost)
		<-ctx.Done()
		return context.Cause(ctx)
	}),
	"error": func(rest string) (step[*call], error) {
		text, err := literal(rest)
		return func(context.Context, *call) error { return &trouble{text} }, err
	},
}

// exhausted is a program that uses up a resource and fails of it; with the argument
// "box" the sandbox dies as well.
func exhausted(resource string, exit runtime.Exit, says string) func(string) (step[*call], error) {
	exit.Exhausted = resource
	return func(rest string) (step[*call], error) {
		if rest != "" && rest != "box" {
			return nil, fmt.Errorf("%q: want nothing, or box to take the sandbox along", rest)
		}
		return func(_ context.Context, c *call) error {
			if resource == runtime.OutOfDisk {
				if err := c.sb.box.fs.fill(places[runtime.Workdir], "filler"); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprintln(c.stderr, says); err != nil {
				return err
			}
			if rest == "box" {
				c.sb.box.end(runtime.ErrLost)
			}
			return &ended{exit}
		}, nil
	}
}
