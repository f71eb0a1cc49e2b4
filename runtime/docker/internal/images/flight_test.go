// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Who was the last to wait sees the work to its end, so that nothing goes on unseen.
func TestTheLastWhoWaitsSeesTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fs flights
		ended := false
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		_, err := fs.do(ctx, "k", func(ctx context.Context) (Image, error) {
			<-ctx.Done()
			time.Sleep(time.Hour) // undoing takes its time; nobody waits in a bubble
			ended = true
			return Image{}, context.Cause(ctx)
		})
		if !errors.Is(err, stopped) || !ended || len(fs.running) != 0 {
			t.Errorf("error %v, ended %v, %d running; want the cause, true, 0", err, ended, len(fs.running))
		}
		// An ended context doesn't begin anything.
		if _, err := fs.do(ctx, "k", func(context.Context) (Image, error) { t.Error("it began"); return Image{}, nil }); !errors.Is(err, stopped) {
			t.Errorf("error %v; want the cause", err)
		}
	})
}
