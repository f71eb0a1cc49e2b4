// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs a function in a thread without privileges, with a tree that is its
// user's. A user without privileges runs it as it is.
func asNobody(t *testing.T, dir string, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	const nobody = 65534
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
	if err != nil {
		t.Fatal(err)
	}
	// t.TempDir is below a directory for its owner only.
	for up := filepath.Dir(dir); len(up) > len(os.TempDir()); up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		goruntime.LockOSThread() // and never unlocked: the thread is no good any more
		// The file system identity is a thread's own, and takes the capabilities that
		// override permissions along.
		if err := unix.Setfsgid(nobody); err != nil {
			t.Error(err)
			return
		}
		if err := unix.Setfsuid(nobody); err != nil {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}

func bindMount(from, to string) error { return unix.Mount(from, to, "", unix.MS_BIND, "") }
