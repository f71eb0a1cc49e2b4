// SPDX-License-Identifier: Apache-2.0

package packcache

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func (c *Cache) bytes() (sum int64) {
	for _, p := range c.packs {
		sum += p.bytes
	}
	return sum
}

// makeRoom takes out what was not used for longest until the rest fits, or is in use. The
// caller holds the lock.
func (c *Cache) makeRoom() {
	if c.limit == 0 {
		return
	}
	for have := c.bytes(); have > c.limit; {
		oldest := ""
		for sha256, p := range c.packs {
			if p.users == 0 && p.ready && (oldest == "" || p.latest.Before(c.packs[oldest].latest)) {
				oldest = sha256
			}
		}
		if oldest == "" {
			return
		}
		have -= c.packs[oldest].bytes
		c.takeOut(oldest)
	}
}

// takeOut removes a pack that nobody uses. Its name is free at once, so that it can be
// fetched anew while the files are still going; a process that dies meanwhile leaves
// nothing that is taken for a pack. The caller holds the lock.
func (c *Cache) takeOut(sha256 string) {
	delete(c.packs, sha256)
	c.fetches.Forget(sha256)
	c.gone++
	trash := filepath.Join(c.dir, fmt.Sprintf(".%s.%d.gone", sha256, c.gone))
	if err := os.Rename(filepath.Join(c.dir, sha256), trash); err != nil {
		return // it isn't there, or the next fetch meets it and checks it
	}
	c.removing.Go(func() { _ = os.RemoveAll(trash) }) // else the next start does
}

// block is what the smallest file takes on most disks, in bytes.
const block = 4096

// diskUse is about what a tree takes on a disk.
func diskUse(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		sum += block
		if d.Type().IsRegular() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			sum += info.Size() / block * block
		}
		return nil
	})
	return sum, err
}
