// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"github.com/tidemill/tidemill/runtime"
)

// hopeless is how many failures in a row make a build's failure permanent. A build may
// fail for a network's sake, so once is not enough; but every trial of a task asks
// again, and each try may take minutes. A permanent failure is told again for a while
// without another try.
const hopeless = 2

// failure remembers that a build failed.
type failure struct {
	times int
	last  *Error
	at    time.Time
	made  []string // what its tries left for the next one to go on from
}

// ended notes how a build ended, and returns the error to tell. The images of its steps
// that are no part of its result are removed, unless there will be another try.
func (s *Store) ended(ctx context.Context, digest string, made []string, err error) error {
	e, failed := errors.AsType[*Error](err)
	failed = failed && ctx.Err() == nil && !errors.Is(err, runtime.ErrCapacity)

	s.mu.Lock()
	f := s.failed[digest]
	made = append(f.made, made...)
	delete(s.failed, digest)
	if failed {
		f.times, f.last, f.at = f.times+1, e, time.Now()
		e.Permanent = e.Permanent || f.times >= hopeless
		if f.made = nil; !e.Permanent {
			f.made, made = made, nil
		}
		s.failed[digest] = f
	}
	s.mu.Unlock()
	if terr := s.tidy(ctx, made); terr != nil {
		s.cfg.Report(terr)
	}
	return err
}

// hopelessly returns the error of a build that isn't worth a try now, or nil.
func (s *Store) hopelessly(digest string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.failed[digest]
	if !ok || !f.last.Permanent || time.Since(f.at) > s.cfg.FailureMemory {
		return nil
	}
	return f.last
}

// tidyTimeout bounds what is done after a build, even one that was cancelled.
const tidyTimeout = 10 * time.Second

// tidy removes images that steps of a build made, the last first. The engine keeps those
// on which something else was built, the build's own result above all.
func (s *Store) tidy(ctx context.Context, made []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	var errs []error
	for _, id := range slices.Backward(made) {
		info, err := s.api.ImageInspect(ctx, id)
		if err == nil && len(info.RepoTags) > 0 {
			continue // it has a name: the result, or somebody wants it
		}
		if err == nil {
			err = s.removeStep(ctx, info.ID)
		}
		if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
			errs = append(errs, fmt.Errorf("docker images: removing %s, which a build left: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// removeStep removes an untagged image. Where a build was cut off, the container of its
// last step is there for a moment longer.
func (s *Store) removeStep(ctx context.Context, id string) error {
	for {
		_, err := s.api.ImageRemove(ctx, id, image.RemoveOptions{})
		if !cerrdefs.IsConflict(err) || !strings.Contains(err.Error(), "container") {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}
