// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// NoLeaks fails the test when something with the marker in it is left at this
// moment: a running process that has it in its command line or environment, or a
// file or directory below one of the roots that has it in its name. A good marker
// is a run id, a trial id, or the path of a data directory.
//
// It looks once and doesn't wait: whoever says that something is gone says so after
// it is gone. Processes are found on Linux only.
func NoLeaks(t testing.TB, marker string, roots ...string) {
	t.Helper()
	if marker == "" {
		t.Fatal("NoLeaks: the marker is empty, which everything has in it")
	}
	left, err := processes("/proc", marker, os.Getpid())
	if err != nil {
		t.Fatalf("looking for left processes: %v", err)
	}
	for _, root := range roots {
		named, err := entries(root, marker)
		if err != nil {
			t.Fatalf("looking for left files: %v", err)
		}
		left = append(left, named...)
	}
	for _, l := range left {
		t.Errorf("left behind: %s", l)
	}
}

// processes lists those that have the marker and aren't self. Processes that end
// while we look, and zombies, have neither command line nor environment and don't
// count; other users' environments can't be read and don't count either.
func processes(proc, marker string, self int) ([]string, error) {
	dirs, err := os.ReadDir(proc)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var left []string
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == self {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(proc, d.Name(), "cmdline"))
		environ, _ := os.ReadFile(filepath.Join(proc, d.Name(), "environ"))
		if has(cmdline, marker) || has(environ, marker) {
			argv := strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))
			left = append(left, fmt.Sprintf("process %d (%s)", pid, argv))
		}
	}
	return left, nil
}

// has reports whether the marker is in a text as a whole: the directory of a test isn't in
// that of another whose name begins with the same words.
func has(text []byte, marker string) bool {
	if !strings.ContainsRune(nameRunes, rune(marker[len(marker)-1])) {
		return bytes.Contains(text, []byte(marker)) // it says itself where it ends
	}
	for {
		i := bytes.Index(text, []byte(marker))
		if i < 0 {
			return false
		}
		text = text[i+len(marker):]
		if len(text) == 0 || !strings.ContainsRune(nameRunes, rune(text[0])) {
			return true
		}
	}
}

// nameRunes go on with a name.
const nameRunes = "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// entries lists what has the marker in its own name; what is below it is not listed
// again. A root that isn't there has nothing in it.
func entries(root, marker string) ([]string, error) {
	var left []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if path == root || !strings.Contains(d.Name(), marker) {
			return nil
		}
		if d.IsDir() {
			left = append(left, "directory "+path)
			return filepath.SkipDir
		}
		left = append(left, "file "+path)
		return nil
	})
	return left, err
}
