// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"sync"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/tidemill/tidemill/runtime"
)

// Run remembers what the images of a run are, so that a tag that moves while the run
// goes on doesn't split its trials, and holds them, so that the budget spares them.
type Run struct {
	store *Store

	mu     sync.Mutex
	known  map[runtime.Image]Image
	closed bool
}

// Run returns an empty memory. Close it.
func (s *Store) Run() *Run { return &Run{store: s, known: map[runtime.Image]Image{}} }

// Ensure is [Store.Ensure] with a memory: what was there once is asked for by its id,
// and where it has gone since, by its digest. Origin stays what it was the first time.
func (r *Run) Ensure(ctx context.Context, want runtime.Image) (Image, error) {
	r.mu.Lock()
	img, known := r.known[want]
	r.mu.Unlock()
	if known {
		again, err := r.store.again(ctx, img)
		if err == nil || !cerrdefs.IsNotFound(err) {
			return again, err
		}
	}
	ask := want
	if known && img.RepoDigest != "" {
		ask = runtime.Image{Ref: img.RepoDigest, PullPolicy: want.PullPolicy}
	}
	got, err := r.store.Ensure(ctx, ask)
	if err != nil {
		return Image{}, err
	}
	if known {
		got.Ref, got.Origin = img.Ref, img.Origin
	}
	return r.remember(want, img.ID, got), nil
}

// remember keeps the first answer of several that came at the same time. gone is the id
// of an answer that holds no longer, or empty.
func (r *Run) remember(want runtime.Image, gone string, got Image) Image {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return got
	}
	before, ok := r.known[want]
	if ok && before.ID != gone {
		return before
	}
	if ok {
		r.store.hold(before.ID, -1)
	}
	r.known[want] = got
	r.store.hold(got.ID, +1)
	return got
}

// Close lets go of the images.
func (r *Run) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	for _, img := range r.known {
		r.store.hold(img.ID, -1)
	}
	r.known = nil
}

func (s *Store) hold(id string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[id] += n; s.held[id] <= 0 {
		delete(s.held, id)
	}
}

func (s *Store) isHeld(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[id] > 0
}

// again looks whether an image is still there. It keeps what was known about it.
func (s *Store) again(ctx context.Context, img Image) (Image, error) {
	now, err := s.inspect(ctx, img.ID)
	if err != nil {
		if cerrdefs.IsNotFound(err) {
			return Image{}, err
		}
		return Image{}, s.trouble(ctx, img.Ref, err)
	}
	img.tagged = now.tagged
	if img.BuildDigest != "" {
		return img, s.touch(ctx, &img)
	}
	return img, nil
}
