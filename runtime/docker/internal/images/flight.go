// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"sync"
)

// flights lets one caller do what several want at the same time. The work goes on while
// anyone waits for it, and ends with the last one who stops waiting.
type flights struct {
	mu      sync.Mutex
	running map[string]*flight
}

type flight struct {
	done    chan struct{}
	img     Image
	err     error
	waiting int
	cancel  context.CancelCauseFunc
}

// do runs f under a key, or waits for the one that runs already.
func (fs *flights) do(ctx context.Context, key string, f func(context.Context) (Image, error)) (Image, error) {
	if err := context.Cause(ctx); err != nil {
		return Image{}, err
	}
	fs.mu.Lock()
	fl := fs.running[key]
	if fl == nil {
		// The first one's context has its values, but not its end: others may join.
		work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		fl = &flight{done: make(chan struct{}), cancel: cancel}
		if fs.running == nil {
			fs.running = map[string]*flight{}
		}
		fs.running[key] = fl
		go func() {
			defer close(fl.done)
			defer cancel(nil)
			fl.img, fl.err = f(work)
			fs.forget(key, fl)
		}()
	}
	fl.waiting++
	fs.mu.Unlock()

	select {
	case <-fl.done:
		return fl.img, fl.err
	case <-ctx.Done():
	}
	fs.mu.Lock()
	fl.waiting--
	last := fl.waiting == 0
	if last && fs.running[key] == fl {
		delete(fs.running, key)
	}
	fs.mu.Unlock()
	if last {
		fl.cancel(context.Cause(ctx))
		<-fl.done
	}
	return Image{}, context.Cause(ctx)
}

func (fs *flights) forget(key string, fl *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.running[key] == fl {
		delete(fs.running, key)
	}
}
