// SPDX-License-Identifier: Apache-2.0

// Package placement tells a file system which files have nothing to do with each other.
//
// ext4 keeps the inodes of a tree together, and doesn't give one away again for minutes
// after it was freed, but looks at each such one first (recently_deleted in the kernel's
// ialloc.c). So where one directory has files that come and go and its neighbour files that
// stay, the second pays with each new file for what was removed from the first.
package placement

// Spread asks for directories made in dir from now on to be placed far from each other. It
// is a hint: file systems that don't know it, and directories that aren't ours, are left
// alone.
func Spread(dir string) { spread(dir) }
