// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/tidemill/tidemill/runtime"
)

var (
	errOutOfTime = errors.New("out of time")
	errStalled   = errors.New("the engine said nothing")
)

// pull pulls an image, several times if need be.
func (s *Store) pull(ctx context.Context, ref string, named reference.Named) error {
	work, cancel := context.WithTimeoutCause(ctx, s.cfg.PullTimeout, errOutOfTime)
	defer cancel()
	for try := 1; ; try++ {
		auth, authErr := s.auth(work, reference.Domain(named))
		err := s.pullOnce(work, named, auth)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case work.Err() != nil:
			return &Error{Image: ref, Err: fmt.Errorf("the pull took longer than %v: %w", s.cfg.PullTimeout, err)}
		}
		t := classify(err)
		if t.kind == refused {
			if authErr != nil {
				t.hint += fmt.Sprintf(" (no credentials were sent: %v)", authErr)
			}
			return &Error{Image: ref, Err: err, Hint: t.hint, Permanent: true}
		}
		if try >= s.cfg.PullTries {
			err = fmt.Errorf("tried %d times: %w", try, err)
			if t.kind == limited {
				err = fmt.Errorf("%w: %w", runtime.ErrCapacity, err)
			}
			return &Error{Image: ref, Err: err, Hint: t.hint}
		}
		select {
		case <-time.After(s.backoff(try)):
		case <-work.Done():
		}
	}
}

// backoff is exponential with full jitter.
func (s *Store) backoff(try int) time.Duration {
	longest := s.cfg.MaxBackoff
	if shift := try - 1; shift < 32 {
		longest = min(longest, s.cfg.Backoff<<shift)
	}
	return rand.N(longest) + 1
}

// pullOnce makes one request and reads its progress to the end.
func (s *Store) pullOnce(ctx context.Context, named reference.Named, auth string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(s.cfg.PullStall, func() { cancel(errStalled) })
	defer alarm.Stop()

	body, err := s.api.ImagePull(ctx, named.String(), image.PullOptions{RegistryAuth: auth})
	if err == nil {
		defer body.Close()
		err = readStream(body, func(message) { alarm.Reset(s.cfg.PullStall) })
	}
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w for %v", errStalled, s.cfg.PullStall)
	}
	return err
}
