// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"io/fs"
	"path/filepath"
	"sync"
)

// room is what the spool has for bundles of trials that are over: so many, and so many
// bytes. One that is larger than all of it gets in when it is empty.
type room struct {
	most      int
	mostBytes int64 // 0 is no bound

	mu      sync.Mutex
	left    *sync.Cond
	count   int
	bytes   int64
	waiting int
}

func newRoom(most int, mostBytes int64) *room {
	r := &room{most: most, mostBytes: mostBytes}
	r.left = sync.NewCond(&r.mu)
	return r
}

// enter waits until there is room for a bundle of so many bytes. It ends, since uploads do.
func (r *room) enter(size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	for !r.fits(size) {
		r.left.Wait()
	}
	r.waiting--
	r.count++
	r.bytes += size
}

func (r *room) fits(size int64) bool {
	return r.count == 0 || r.count < r.most && (r.mostBytes == 0 || r.bytes+size <= r.mostBytes)
}

func (r *room) leave(size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count--
	r.bytes -= size
	r.left.Broadcast()
}

// look tells what is in there, and how many slots wait for room.
func (r *room) look() (count int, bytes int64, waiting int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, r.bytes, r.waiting
}

// size is how many bytes the attempt's bundle has by now. What can't be read counts as
// nothing; sealing tells of it.
func (wk *work) size() (sum int64) {
	_ = filepath.WalkDir(wk.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // see above
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
