// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
)

// Exit codes.
const (
	ExitOK          = 0 // every trial scored
	ExitFailure     = 1 // our failure
	ExitUsage       = 2 // bad input or usage
	ExitUnscored    = 3 // finished, with unscored trials
	ExitInterrupted = 4 // interrupted; give the same command again to go on
)

// CodeError carries an exit code. Silent ones were explained already.
type CodeError struct {
	Code   int
	Err    error
	Silent bool
}

func (e *CodeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *CodeError) Unwrap() error { return e.Err }

// Usage marks an error as bad input.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &CodeError{Code: ExitUsage, Err: err}
}

// InputError is an error of reading what a command was given: bad input, unless ctx ended
// meanwhile.
func InputError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return Usage(err)
}

// Exit ends a command with a code whose reason was shown already; nil for [ExitOK].
func Exit(code int) error {
	if code == ExitOK {
		return nil
	}
	return &CodeError{Code: code, Silent: true}
}

// hinted adds the next step to an error.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hint adds what to do next to an error.
func Hint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return hinted{err, fmt.Sprintf(format, args...)}
}

// Closing is for a deferred call: it closes something and keeps the error beside that of
// the command. What can't be given back is our failure, also where the command had
// nothing more to say.
func Closing(err *error, closeIt func() error) {
	failed := closeIt()
	if failed == nil {
		return
	}
	if ce, ok := errors.AsType[*CodeError](*err); ok && ce.Silent {
		*err = failed
		return
	}
	*err = errors.Join(*err, failed)
}

// codeOf returns the exit code that an error asks for.
func codeOf(ctx context.Context, err error) int {
	if err == nil {
		return ExitOK
	}
	if ce, ok := errors.AsType[*CodeError](err); ok {
		return ce.Code
	}
	if interrupted(ctx, err) {
		return ExitInterrupted
	}
	return ExitFailure
}

// interrupted reports whether an error says no more than that somebody pressed Ctrl-C.
func interrupted(ctx context.Context, err error) bool {
	return errors.Is(context.Cause(ctx), ErrInterrupted) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, ErrInterrupted))
}
