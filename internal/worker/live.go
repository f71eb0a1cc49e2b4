// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/runtime"
)

// Attempt is an attempt that runs here, for those who look at it from outside. It may be
// held beyond the attempt's end: then it has nothing new to tell.
type Attempt struct {
	Run        string
	TaskID     string
	TrialIndex int
	TrialID    string
	Number     int // of the attempt

	dir string // of the bundle, in the spool

	mu      sync.Mutex
	box     *trial.Live
	version int           // grows with all that is new
	changed chan struct{} // closed when it grows; nil while nobody waits
	ended   bool
}

// Attempt returns the attempt of a trial that runs here now, nil when none does.
func (w *Worker) Attempt(trialID string) *Attempt {
	w.liveMu.Lock()
	defer w.liveMu.Unlock()
	return w.live[trialID]
}

// present shows an attempt to those outside, until the returned function is called.
func (wk *work) present() (*Attempt, func()) {
	a := &Attempt{
		Run: wk.keys.Run, TaskID: wk.row.TaskID, TrialIndex: wk.row.TrialIndex, TrialID: wk.row.TrialID,
		Number: wk.claim.Attempt, dir: wk.dir,
	}
	w := wk.w
	w.liveMu.Lock()
	w.live[a.TrialID] = a
	w.liveMu.Unlock()
	return a, func() {
		w.liveMu.Lock()
		if w.live[a.TrialID] == a { // a lost lease may have come back meanwhile
			delete(w.live, a.TrialID)
		}
		w.liveMu.Unlock()
		a.change(func() { a.ended = true })
	}
}

// opened is told of the attempt's sandbox.
func (a *Attempt) opened(box *trial.Live) { a.change(func() { a.box = box }) }

func (a *Attempt) change(what func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	what()
	a.version++
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// Await waits until the attempt has something to tell that is newer than a version, which
// begins with 0, and returns the version of now. It returns false when there never will
// be, because the attempt has ended, or when ctx is over.
func (a *Attempt) Await(ctx context.Context, version int) (int, bool) {
	for {
		a.mu.Lock()
		if now := a.version; now != version || a.ended {
			a.mu.Unlock()
			return now, now != version && ctx.Err() == nil
		}
		if a.changed == nil {
			a.changed = make(chan struct{})
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return version, false
		}
	}
}

// ErrNoSandbox: the attempt has no sandbox yet.
var ErrNoSandbox = errors.New("the attempt has no sandbox yet")

// Sandbox returns the attempt's sandbox; [ErrNoSandbox] before it is open.
func (a *Attempt) Sandbox() (*trial.Live, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.box == nil {
		return nil, ErrNoSandbox
	}
	return a.box, nil
}

// Exec runs a command in the attempt's sandbox; see [trial.Live.Exec].
func (a *Attempt) Exec(ctx context.Context, cmd runtime.Command) (runtime.Exit, error) {
	box, err := a.Sandbox()
	if err != nil {
		return runtime.Exit{}, err
	}
	return box.Exec(ctx, cmd)
}

// Tail reads a file of the attempt's bundle from its start, while it grows. Close it.
func (a *Attempt) Tail(name string) *Tail {
	return &Tail{a: a, path: filepath.Join(a.dir, bundle.LocalPath(name))}
}

// Tail is a reader of a file that grows. It is used by one goroutine.
type Tail struct {
	a    *Attempt
	path string
	file *os.File
	seen int // the attempt's version when all of it was read
}

var _ io.ReadCloser = (*Tail)(nil)

// Read returns what is there, and io.EOF when that was all by now. It may be called again
// after [Tail.More].
func (t *Tail) Read(p []byte) (int, error) {
	t.a.mu.Lock()
	version := t.a.version
	t.a.mu.Unlock()
	if t.file == nil {
		f, err := os.Open(t.path)
		if errors.Is(err, fs.ErrNotExist) {
			t.seen = version
			return 0, io.EOF
		}
		if err != nil {
			return 0, fmt.Errorf("log of a running attempt: %w", err)
		}
		t.file = f
	}
	n, err := t.file.Read(p)
	if errors.Is(err, io.EOF) {
		t.seen = version
	}
	return n, err
}

// More waits until there may be more to read. It returns false when there never will be,
// because the attempt has ended, or when ctx is over.
func (t *Tail) More(ctx context.Context) bool {
	_, more := t.a.Await(ctx, t.seen)
	return more
}

// Close closes the file.
func (t *Tail) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// watched tells those who follow a file that it has grown.
type watched struct {
	trial.Files
	a *Attempt
}

func (f watched) Create(name string) (io.WriteCloser, error) {
	w, err := f.Files.Create(name)
	if err != nil {
		return nil, err
	}
	return watchedFile{w, f.a}, nil
}

type watchedFile struct {
	io.WriteCloser
	a *Attempt
}

func (f watchedFile) Write(p []byte) (int, error) {
	n, err := f.WriteCloser.Write(p)
	f.a.change(func() {})
	return n, err
}

// keepAtMost bounds how long a sandbox may be kept for people.
const keepAtMost = 90 * 24 * time.Hour
