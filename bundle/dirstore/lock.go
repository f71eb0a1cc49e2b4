// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// locks makes replacing and deleting one key exclusive, between goroutines and between
// processes. Keys share a number of locks in one file; the kernel lets go of a lock when
// its process dies.
type locks struct {
	file *os.File
	// turn is for the goroutines of this process, which the kernel doesn't tell apart;
	// each channel holds a token while its lock is taken.
	turn [shards]chan struct{}
}

func openLocks(path string) (*locks, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	l := &locks{file: f}
	for i := range l.turn {
		l.turn[i] = make(chan struct{}, 1)
	}
	return l, nil
}

// with runs a function that nobody else runs for the key at the same time.
func (l *locks) with(ctx context.Context, key string, run func() error) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	n := h.Sum32() % shards
	select {
	case l.turn[n] <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("lock %s: %w", key, ctx.Err())
	}
	defer func() { <-l.turn[n] }()
	if err := l.lock(ctx, int64(n)); err != nil {
		return fmt.Errorf("lock %s: %w", key, err)
	}
	return errors.Join(run(), l.set(int64(n), unix.F_UNLCK))
}

// lock waits for the other processes. A call that waits can't be interrupted, so it
// asks again and again; a lock is held for the time of a rename.
func (l *locks) lock(ctx context.Context, n int64) error {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		err := l.set(n, unix.F_WRLCK)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *locks) close() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
