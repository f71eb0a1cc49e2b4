// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// LookUp finds a program as a shell in dir would. The standard library's LookPath uses
// the process's own PATH and directory.
func LookUp(name, path, dir string) (string, error) {
	if name == "" {
		return "", errors.New("the program's name is empty")
	}
	if strings.Contains(name, "/") {
		return name, nil // execve says what is wrong with it
	}
	found := fmt.Errorf("it is not on the PATH of the sandbox: %w", unix.ENOENT)
	for _, elem := range filepath.SplitList(path) {
		file := filepath.Join(elem, name)
		if !filepath.IsAbs(elem) { // an empty one is the current directory
			file = filepath.Join(dir, file)
		}
		if !isThere(file) {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		found = fmt.Errorf("%s: %w", file, unix.EACCES)
	}
	return "", found
}

// isThere tells whether a path leads to something that isn't a directory. Most places on a
// PATH don't have what is looked for: nobody reads an error about each.
func isThere(path string) bool {
	var st unix.Stat_t
	for {
		err := unix.Stat(path, &st)
		if err != unix.EINTR {
			return err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR
		}
	}
}
