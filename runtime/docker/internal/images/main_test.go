// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience turns a hang into a failure.
const patience = time.Minute

// engine is the real one; it counts what is asked of it, and a test can put itself
// before a call.
type engine struct {
	*client.Client
	pulls, builds atomic.Int64

	mu            sync.Mutex
	running, most int // builds at a time
	beforePull    func(ctx context.Context) error
	beforeBuild   func(ctx context.Context) error
}

func (e *engine) ImagePull(ctx context.Context, ref string, opts image.PullOptions) (io.ReadCloser, error) {
	e.pulls.Add(1)
	if err := e.hook(&e.beforePull)(ctx); err != nil {
		return nil, err
	}
	return e.Client.ImagePull(ctx, ref, opts)
}

func (e *engine) ImageBuild(ctx context.Context, r io.Reader, opts build.ImageBuildOptions) (build.ImageBuildResponse, error) {
	e.builds.Add(1)
	e.mu.Lock()
	e.running++
	e.most = max(e.most, e.running)
	e.mu.Unlock()
	if err := e.hook(&e.beforeBuild)(ctx); err != nil {
		return build.ImageBuildResponse{}, err
	}
	resp, err := e.Client.ImageBuild(ctx, r, opts)
	resp.Body = &watched{resp.Body, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.running--
	}}
	return resp, err
}

// watched is a stream whose end is noticed.
type watched struct {
	io.ReadCloser
	closed func()
}

func (w *watched) Close() error {
	w.closed()
	return w.ReadCloser.Close()
}

func (e *engine) runningBuilds() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running
}

func (e *engine) hook(f *func(context.Context) error) func(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if *f == nil {
		return func(context.Context) error { return nil }
	}
	return *f
}

// newEngine skips without an engine.
func newEngine(t testing.TB) *engine { return &engine{Client: testenv.Docker(t)} }

// newStore has no patience and no credentials.
func newStore(t testing.TB, api API, edit ...func(*Config)) *Store {
	t.Helper()
	cfg := Config{DockerConfig: t.TempDir(), PullTimeout: patience, Backoff: time.Millisecond, MaxBackoff: time.Millisecond}
	for _, f := range edit {
		f(&cfg)
	}
	s, err := New(api, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// removeAfter removes an image when the test has ended.
func removeAfter(t testing.TB, api API, refs ...string) {
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		for _, ref := range refs {
			if _, err := api.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true}); err != nil && !cerrdefs.IsNotFound(err) {
				t.Errorf("remove %s: %v", ref, err)
			}
		}
	})
}

// eventually waits for a condition that nobody announces.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	if !poll(cond) {
		t.Fatalf("never: %s", what)
	}
}

// poll is for goroutines that may not end the test.
func poll(cond func() bool) bool {
	for end := time.Now().Add(patience); !cond(); {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(time.Millisecond) // the state of an engine or of a counter, which sends no event
	}
	return true
}

// wantError checks kind and text of an error and returns it.
func wantError(t testing.TB, err error, permanent bool, texts ...string) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error %v (%T); want an Error", err, err)
	}
	if e.Permanent != permanent {
		t.Errorf("permanent is %v; want %v: %v", e.Permanent, permanent, err)
	}
	for _, text := range texts {
		if !contains(err.Error(), text) {
			t.Errorf("error %q; want it to say %q", err, text)
		}
	}
	return e
}

// tree writes files into a new directory. A name that ends in "/" is a directory, one
// that has "->" a symlink, one that begins with "!" is executable.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		var err error
		mode := os.FileMode(0o644)
		if rest, ok := cutPrefix(name, "!"); ok {
			name, mode = rest, 0o755
		}
		path := filepath.Join(dir, name)
		switch {
		case name[len(name)-1] == '/':
			err = os.MkdirAll(path, 0o755)
		default:
			if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				break
			}
			if target, ok := cutPrefix(text, "-> "); ok {
				err = os.Symlink(target, path)
			} else if err = os.WriteFile(path, []byte(text), mode); err == nil {
				err = os.Chmod(path, mode)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
