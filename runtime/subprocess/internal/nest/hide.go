// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"os"
	"path/filepath"
	"slices"
)

// DefaultHide returns what is hidden in any case: home directories, where people keep
// their keys, the places of sockets and pid files, and of temporary files. Only what
// exists, without symlinks.
func DefaultHide() []string {
	dirs := []string{"/root", "/home", "/run", "/var/run", "/tmp", "/var/tmp"}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, home)
	}
	return Hidden(dirs...)
}

// Hidden returns those of the directories that exist, without symlinks, and without
// those that can't be hidden because everything is in them.
func Hidden(dirs ...string) []string {
	var real []string
	for _, dir := range dirs {
		path, err := filepath.EvalSymlinks(dir)
		if err != nil || path == "/" || !filepath.IsAbs(path) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			real = append(real, path)
		}
	}
	slices.Sort(real)
	return slices.Compact(real)
}
