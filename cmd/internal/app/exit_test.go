// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestExitCodesAndWhatIsSaid(t *testing.T) {
	broken := errors.New("the disk is broken")
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(ErrInterrupted)
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		code int
		said string
	}{
		"nothing":             {err: nil, code: ExitOK},
		"a failure":           {err: broken, code: ExitFailure, said: "tm: the disk is broken\n"},
		"bad input":           {err: Usage(broken), code: ExitUsage, said: "tm: the disk is broken\n"},
		"bad input, wrapped":  {err: fmt.Errorf("open: %w", Usage(broken)), code: ExitUsage, said: "tm: open: the disk is broken\n"},
		"said already":        {err: Exit(ExitUnscored), code: ExitUnscored},
		"nothing to exit for": {err: Exit(ExitOK), code: ExitOK},
		"a hint":              {err: Hint(broken, "mend %s", "it"), code: ExitFailure, said: "tm: the disk is broken\ntm: hint: mend it\n"},
		"a hint on bad input": {err: Usage(Hint(broken, "mend it")), code: ExitUsage, said: "tm: the disk is broken\ntm: hint: mend it\n"},
		"hints of several": {
			err: errors.Join(Hint(errors.New("a"), "do b"), Hint(errors.New("c"), "do d")), code: ExitFailure,
			said: "tm: a\ntm: c\ntm: hint: do b\ntm: hint: do d\n",
		},
		"the same hint of several": {
			err: errors.Join(Hint(errors.New("a"), "do b"), Hint(errors.New("c"), "do b")), code: ExitFailure,
			said: "tm: a\ntm: c\ntm: hint: do b\n",
		},
		"several lines":                  {err: errors.New("a\n\nb \n"), code: ExitFailure, said: "tm: a\ntm: b\n"},
		"Ctrl-C, as it was noticed":      {ctx: interrupted, err: fmt.Errorf("list: %w", context.Canceled), code: ExitInterrupted, said: "tm: interrupted\n"},
		"Ctrl-C, with what comes next":   {ctx: interrupted, err: Hint(ErrInterrupted, "again"), code: ExitInterrupted, said: "tm: interrupted\ntm: hint: again\n"},
		"a failure after Ctrl-C":         {ctx: interrupted, err: broken, code: ExitFailure, said: "tm: the disk is broken\n"},
		"cancelled by something of ours": {err: context.Canceled, code: ExitFailure, said: "tm: context canceled\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			var said bytes.Buffer
			cmd := &cobra.Command{Use: "tm", RunE: func(*cobra.Command, []string) error { return c.err }}
			cmd.SetArgs(nil)
			if code := run(ctx, cmd, &said); code != c.code {
				t.Errorf("exit code %d; want %d", code, c.code)
			}
			if diff := cmp.Diff(c.said, said.String()); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
		})
	}
}

// Nobody's input is wrong when reading it was interrupted.
func TestInputErrors(t *testing.T) {
	broken := errors.New("line 3 is broken")
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(ErrInterrupted)
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		code int
		want error
	}{
		"none":                   {t.Context(), nil, ExitOK, nil},
		"none, and interrupted":  {interrupted, nil, ExitOK, nil},
		"bad input":              {t.Context(), broken, ExitUsage, broken},
		"interrupted while read": {interrupted, fmt.Errorf("line 3: %w", context.Canceled), ExitInterrupted, ErrInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			err := InputError(c.ctx, c.err)
			if code := codeOf(c.ctx, err); code != c.code || !errors.Is(err, c.want) {
				t.Errorf("%v, exit code %d; want %v, %d", err, code, c.want, c.code)
			}
		})
	}
}

// What can't be given back is a failure of ours, whatever else the command wanted to say.
func TestClosing(t *testing.T) {
	failed, broken := errors.New("the lock is stuck"), errors.New("the disk is broken")
	for name, c := range map[string]struct {
		before error
		close  error
		code   int
		want   []string
	}{
		"all is well":               {nil, nil, ExitOK, nil},
		"it alone":                  {nil, failed, ExitFailure, []string{"the lock is stuck"}},
		"beside another":            {broken, failed, ExitFailure, []string{"the disk is broken", "the lock is stuck"}},
		"beside bad input":          {Usage(broken), failed, ExitUsage, []string{"the disk is broken", "the lock is stuck"}},
		"instead of a silent code":  {Exit(ExitUnscored), failed, ExitFailure, []string{"the lock is stuck"}},
		"a silent code stays as is": {Exit(ExitUnscored), nil, ExitUnscored, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.before
			Closing(&err, func() error { return c.close })
			if code := codeOf(t.Context(), err); code != c.code {
				t.Errorf("exit code %d; want %d", code, c.code)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v; want %q in it", err, want)
				}
			}
		})
	}
}
