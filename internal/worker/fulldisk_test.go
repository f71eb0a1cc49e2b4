// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var free int64
		var trouble error
		disk := func(n int64, err error) {
			mu.Lock()
			defer mu.Unlock()
			free, trouble = n, err
		}
		disk(10<<20, nil)
		f := newFullDisk("", 640<<20) // full below 10 MiB
		f.ask = func() (int64, error) {
			mu.Lock()
			defer mu.Unlock()
			return free, trouble
		}
		begun := time.Now()
		stop := make(chan struct{})
		ctx := t.Context()
		go func() {
			defer close(stop)
			f.watch(ctx)
		}()
		time.Sleep(time.Minute)
		if err := f.since(begun); err != nil {
			t.Errorf("with enough: %v", err)
		}
		disk(0, errors.New("stale handle"))
		time.Sleep(time.Minute)
		if err := f.since(begun); err != nil {
			t.Errorf("with a disk that says nothing: %v", err)
		}
		disk(10<<20-1, nil)
		time.Sleep(2 * fullEvery)
		disk(10<<20, nil)
		time.Sleep(time.Minute)
		if f.since(begun) == nil {
			t.Error("it was full for a second and nobody remembers")
		}
		if err := f.since(time.Now().Add(-time.Second)); err != nil {
			t.Errorf("for one that began later: %v", err)
		}
	})
}

func TestFullDiskIsAMiBAtLeast(t *testing.T) {
	for minFree, want := range map[int64]int64{0: 1 << 20, 1 << 20: 1 << 20, 1 << 30: 16 << 20} {
		if got := newFullDisk("", minFree).below; got != want {
			t.Errorf("with %d to begin: full below %d, want %d", minFree, got, want)
		}
	}
}
