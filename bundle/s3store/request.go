// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

const (
	// slowest is the rate in bytes per second below which a transfer counts as stuck.
	slowest = 128 << 10
	// timeoutsOfCall is how many attempts may use up their time before a call ends.
	timeoutsOfCall = 3
)

// request is one request of a call, with all its attempts.
type request struct {
	s       *Store
	timeout time.Duration // of one attempt
	// stream: the answer's body is read after the request; time ends with its head.
	stream bool
	// unsure: an attempt that failed may have had an effect.
	unsure bool
}

// slowError is the end of an attempt, or of a call, that took too long.
type slowError struct{ after time.Duration }

func (e *slowError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

func (s *Store) request(size int64) *request {
	return &request{s: s, timeout: s.opts.Timeout + time.Duration(size/slowest)*time.Second}
}

// do runs a request within the time for a call. The function gets a context and an option
// for the client's method.
func (r *request) do(ctx context.Context, call func(context.Context, func(*s3.Options)) error) error {
	limit := timeoutsOfCall * r.timeout
	slow := &slowError{limit}
	callCtx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(slow) })
	w := &watched{RetryerV2: r.s.retryer}
	err := call(callCtx, func(o *s3.Options) {
		o.Retryer = w
		o.APIOptions = append(o.APIOptions, r.limitAttempts)
	})
	timer.Stop()
	r.unsure = w.unsure
	switch {
	case err == nil && r.stream:
		return nil // what was opened lives as long as the caller's context
	case err != nil && ctx.Err() != nil:
		err = ctx.Err()
	case err != nil && errors.Is(context.Cause(callCtx), slow):
		err = slow
	}
	cancel(nil)
	return err
}

// call is for requests about which nothing else is to be known.
func (s *Store) call(ctx context.Context, size int64, do func(context.Context, func(*s3.Options)) error) error {
	return s.request(size).do(ctx, do)
}

// limitAttempts gives each attempt its time.
func (r *request) limitAttempts(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("TidemillAttemptTimeout", r.attempt), "Retry", middleware.After)
}

func (r *request) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	slow := &slowError{r.timeout}
	attemptCtx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(r.timeout, func() { cancel(slow) })
	out, metadata, err := next.HandleFinalize(attemptCtx, in)
	timer.Stop()
	if err == nil && r.stream {
		return out, metadata, nil
	}
	if err != nil && ctx.Err() == nil && attemptCtx.Err() != nil {
		err = slow // hides that a context was cancelled: the call's was not
	}
	cancel(nil)
	return out, metadata, err
}
