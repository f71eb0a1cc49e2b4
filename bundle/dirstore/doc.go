// SPDX-License-Identifier: Apache-2.0

// Package dirstore keeps a store of bundles in a directory: a file for each object,
// under the object's own key.
//
// A key is a path below the root; only segments that no file system would take are
// spelled differently, see [bundle.LocalPath]. Names with a leading dot are ours:
//
//	<root>/.tmp/   objects that are being written; what a crash leaves is removed
//	               a day later, when the store is next opened
//	<root>/.lock    whose bytes replacing and deleting lock
//
// # How a write becomes an object
//
// The bytes go to a file without a name, or where there is no such thing to one in .tmp,
// which is brought to disk. To create, that file is linked to its place, which fails if
// anything is there: the kernel decides who was first, among goroutines and processes
// alike. To replace, it is renamed to its place. Then the directory is brought to disk. So
// an object is whole or not there, and what was acknowledged survives a power cut, as far
// as the disk tells the truth.
//
// A bundle comes as a directory, which is moved to its place as a whole; see
// [Store.TakeDir]. That is one rename for all files, and each directory is brought to disk
// once: half of what an ordinary trial asked of the disk were copies of its bundle.
//
// Replacing and deleting take a lock for the key, which holds among processes too, so
// that Swap can compare and rename without anyone in between. Creating needs none.
//
// # Versions
//
// The version of an object is its modification time, which is set in nanoseconds when
// it is written, its size and its inode. A file that replaces another gets an inode
// while the other still has its own, so a version comes back only if an inode is used
// again within the same nanosecond. On file systems that keep coarse times Swap is
// refused.
package dirstore
