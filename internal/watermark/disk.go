// SPDX-License-Identifier: Apache-2.0

package watermark

import (
	"fmt"
	"math"
	"math/bits"

	"golang.org/x/sys/unix"
)

// Disk returns how many bytes programs that aren't root may still write where a directory
// is. On a disk that runs out of inodes before it runs out of room it is 0.
func Disk(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("free disk of %s: %w", dir, err)
	}
	if st.Files > 0 && st.Ffree == 0 {
		return 0, nil
	}
	hi, lo := bits.Mul64(uint64(st.Bavail), uint64(st.Bsize)) //nolint:unconvert // the types differ by system
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64, nil
	}
	return int64(lo), nil
}
