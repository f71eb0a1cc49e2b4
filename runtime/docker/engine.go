// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
)

// engine is the client with a deadline for every call: a daemon that hangs must not hang
// a trial.
type engine struct {
	*client.Client
	short, long time.Duration
}

func newEngine(cfg Config) (*engine, error) {
	opts := cfg.Client
	if len(opts) == 0 {
		opts = []client.Opt{client.FromEnv}
	}
	c, err := client.NewClientWithOpts(append(slices.Clone(opts), client.WithAPIVersionNegotiation())...)
	if err != nil {
		return nil, fmt.Errorf("docker client: %w; DOCKER_HOST, DOCKER_CERT_PATH and DOCKER_API_VERSION say where the engine is", err)
	}
	return &engine{Client: c, short: cfg.Call, long: cfg.Slow}, nil
}

// stalledError says that the engine didn't answer in time. What was asked for may have
// happened all the same.
type stalledError struct {
	what  string
	after time.Duration
}

func (e *stalledError) Error() string {
	return fmt.Sprintf("the Docker engine gave no answer to %q for %v", e.what, e.after)
}

// quick asks for something that takes no work.
func quick[T any](ctx context.Context, e *engine, what string, ask func(context.Context) (T, error)) (T, error) {
	return call(ctx, e, e.short, what, ask)
}

// slow asks for something that does.
func slow[T any](ctx context.Context, e *engine, what string, ask func(context.Context) (T, error)) (T, error) {
	return call(ctx, e, e.long, what, ask)
}

// just is for calls that return nothing but an error.
func just(ask func(context.Context) error) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, ask(ctx) }
}

func call[T any](ctx context.Context, e *engine, limit time.Duration, what string, ask func(context.Context) (T, error)) (T, error) {
	stalled := &stalledError{what, limit}
	bound, cancel := context.WithTimeoutCause(ctx, limit, stalled)
	defer cancel()
	v, err := ask(bound)
	switch {
	case err == nil:
		return v, nil
	case ctx.Err() != nil:
		return v, context.Cause(ctx)
	case bound.Err() != nil:
		return v, stalled
	}
	return v, e.explain(what, err)
}

// unreachableError says that nobody answers at the engine's address.
type unreachableError struct {
	host string
	err  error
}

func (e *unreachableError) Error() string {
	hint := "is the Docker daemon running? Start it, or set DOCKER_HOST to where it is"
	if errors.Is(e.err, fs.ErrPermission) {
		hint = "this user may not use it: add it to the socket's group, or set DOCKER_HOST to an engine of its own"
	}
	return fmt.Sprintf("no Docker engine answers at %s: %v; %s", e.host, e.err, hint)
}

func (e *unreachableError) Unwrap() error { return e.err }

// explain says what was asked for, and what to do when nobody is there.
func (e *engine) explain(what string, err error) error {
	if client.IsErrConnectionFailed(err) || errors.Is(err, fs.ErrPermission) {
		return &unreachableError{e.DaemonHost(), err}
	}
	return fmt.Errorf("docker: %s: %w", what, err)
}

func isGone(err error) bool     { return cerrdefs.IsNotFound(err) }
func isConflict(err error) bool { return cerrdefs.IsConflict(err) }

// isAnswer tells an error that the engine gave from one that says nothing about what
// the engine did.
func isAnswer(err error) bool {
	return cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) || cerrdefs.IsInvalidArgument(err) ||
		cerrdefs.IsPermissionDenied(err) || cerrdefs.IsUnauthorized(err) || cerrdefs.IsNotImplemented(err) ||
		cerrdefs.IsNotModified(err)
}

// unheard reports whether an error is one of not hearing from the engine: what it did, and
// how things are, nobody knows.
func unheard(err error) bool {
	stalled, unreachable := (*stalledError)(nil), (*unreachableError)(nil)
	return errors.As(err, &stalled) || errors.As(err, &unreachable)
}

// errNoSuchID is for what can't be an id of the engine's, so nothing has it.
var errNoSuchID = fmt.Errorf("no such id: %w", cerrdefs.ErrNotFound)
