// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"os"

	"golang.org/x/sys/unix"
)

// topDir is EXT4_TOPDIR_FL, chattr's T: what is made in such a directory is the top of a
// tree of its own. It isn't inherited.
const topDir = 0x20000

func spread(dir string) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type != unix.EXT4_SUPER_MAGIC {
		return // the flag may mean something else there
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil || flags&topDir != 0 {
		return
	}
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|topDir) // a hint
}
