// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMadeOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New[string, int](t.Context())
		defer g.Close()
		var made atomic.Int32
		release := make(chan struct{})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				v, err := g.Get(t.Context(), "a", func(context.Context) (int, error) {
					<-release
					return int(made.Add(1)), nil
				})
				if v != 1 || err != nil {
					t.Errorf("got %d, %v", v, err)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if v, err := g.Get(t.Context(), "a", nil); v != 1 || err != nil {
			t.Errorf("kept is %d, %v", v, err)
		}
		if v, err := g.Get(t.Context(), "b", func(context.Context) (int, error) { return 7, nil }); v != 7 || err != nil {
			t.Errorf("another key is %d, %v", v, err)
		}
	})
}

func TestFailuresAreForgotten(t *testing.T) {
	g := New[string, int](t.Context())
	defer g.Close()
	if _, err := g.Get(t.Context(), "a", func(context.Context) (int, error) { return 1, io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if v, err := g.Get(t.Context(), "a", func(context.Context) (int, error) { return 2, nil }); v != 2 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
	g.Forget("a")
	if v, err := g.Get(t.Context(), "a", func(context.Context) (int, error) { return 3, nil }); v != 3 || err != nil {
		t.Errorf("got %d, %v after it was forgotten", v, err)
	}
}

// Who gives up takes nothing from the others.
func TestWaiterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New[string, int](t.Context())
		defer g.Close()
		release := make(chan struct{})
		produce := func(ctx context.Context) (int, error) {
			select {
			case <-release:
				return 5, nil
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		}
		impatient, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := g.Get(impatient, "a", produce); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("the first got %v, want the cause of its own context", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if v, err := g.Get(t.Context(), "a", produce); v != 5 || err != nil {
				t.Errorf("the second got %d, %v", v, err)
			}
		})
		synctest.Wait()
		cancel(io.ErrClosedPipe)
		synctest.Wait()
		close(release)
		wg.Wait()
	})
}

func TestPanicIsAFailure(t *testing.T) {
	g := New[string, int](t.Context())
	defer g.Close()
	_, err := g.Get(t.Context(), "a", func(context.Context) (int, error) { panic(io.ErrShortWrite) })
	p, ok := errors.AsType[*PanicError](err)
	if !ok || !strings.Contains(string(p.Stack), "flight_test.go") || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
	if v, err := g.Get(t.Context(), "a", func(context.Context) (int, error) { return 2, nil }); v != 2 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
}

func TestCloseEndsWhatIsBeingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New[string, int](context.Background())
		if _, err := g.Get(t.Context(), "kept", func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := g.Get(t.Context(), "slow", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, context.Cause(ctx)
			})
			if !errors.Is(err, ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		if kept := g.Close(); len(kept) != 1 || kept["kept"] != 1 {
			t.Errorf("kept %v", kept)
		}
		wg.Wait()
		if kept := g.Close(); len(kept) != 0 {
			t.Errorf("closed again: %v", kept)
		}
		if _, err := g.Get(t.Context(), "late", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// What was made while the group was being closed is handed back too: nobody else could
// give it back.
func TestCloseHandsBackWhatCameLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New[string, int](t.Context())
		go func() {
			_, _ = g.Get(t.Context(), "a", func(ctx context.Context) (int, error) { <-ctx.Done(); return 9, nil })
		}()
		synctest.Wait()
		if kept := g.Close(); kept["a"] != 9 {
			t.Errorf("kept %v", kept)
		}
	})
}
