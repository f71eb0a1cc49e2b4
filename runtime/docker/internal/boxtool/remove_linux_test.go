// SPDX-License-Identifier: Apache-2.0

package boxtool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte("x"), 0o644))
}

// deep makes a chain of directories, with a file beside each, whose path may be longer
// than a path can be.
func deep(t *testing.T, root string, n int) {
	t.Helper()
	must(t, os.Mkdir(root, 0o755))
	fd, err := unix.Open(root, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	name := strings.Repeat("d", 60)
	for range n {
		file, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		must(t, err)
		must(t, unix.Close(file))
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		must(t, unix.Close(fd))
		fd = next
	}
	must(t, unix.Close(fd))
}

func TestRemove(t *testing.T) {
	cases := []struct {
		name string
		make func(t *testing.T, path string)
	}{
		{"nothing", func(*testing.T, string) {}},
		{"a file", write},
		{"an empty directory", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o755)) }},
		{"a directory with a file", func(t *testing.T, path string) { write(t, filepath.Join(path, "f")) }},
		{"names with odd bytes", func(t *testing.T, path string) {
			for _, n := range []string{" ", "\n", "-rf", "...", "..x", ".x", "*", "\xff\xfe", "ä", "\x01", strings.Repeat("n", 255)} {
				write(t, filepath.Join(path, n))
				write(t, filepath.Join(path, "d"+n[:min(len(n), 200)], n))
			}
		}},
		{"fifos, sockets and dangling links", func(t *testing.T, path string) {
			must(t, os.Mkdir(path, 0o755))
			must(t, unix.Mkfifo(filepath.Join(path, "fifo"), 0o644))
			must(t, unix.Mknod(filepath.Join(path, "socket"), unix.S_IFSOCK|0o644, 0))
			must(t, os.Symlink("nowhere", filepath.Join(path, "link")))
			must(t, os.Symlink(".", filepath.Join(path, "loop")))
		}},
		{"more entries than a buffer holds", func(t *testing.T, path string) {
			for i := range 1500 {
				write(t, filepath.Join(path, fmt.Sprintf("a-name-of-some-length-%04d", i)))
			}
		}},
		{"many directories with something in them", func(t *testing.T, path string) {
			for i := range 300 {
				write(t, filepath.Join(path, fmt.Sprintf("a-name-of-some-length-%04d", i), "x", "y"))
			}
		}},
		{"31 levels", func(t *testing.T, path string) { deep(t, path, 31) }},
		{"32 levels", func(t *testing.T, path string) { deep(t, path, 32) }},
		{"33 levels", func(t *testing.T, path string) { deep(t, path, 33) }},
		{"500 levels, longer than any path", func(t *testing.T, path string) { deep(t, path, 500) }},
		{"branches below the levels that are kept open", func(t *testing.T, path string) {
			deep(t, path, 30)
			at := path
			for range 30 {
				at = filepath.Join(at, strings.Repeat("d", 60))
			}
			for i := range 64 {
				write(t, filepath.Join(at, fmt.Sprintf("b%d/c/d/e/f", i)))
			}
		}},
	}
	eachTool(t, func(t *testing.T, box tool) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "p")
				c.make(t, path)
				write(t, filepath.Join(dir, "beside"))
				if code, _ := box.run(t, boxtool.Remove, path); code != 0 {
					t.Fatalf("exit code %d: %v", code, syscall.Errno(code))
				}
				left, err := os.ReadDir(dir)
				must(t, err)
				if len(left) != 1 || left[0].Name() != "beside" {
					t.Errorf("left: %v, want only what was beside it", left)
				}
			})
		}
	})
}

func TestRemoveTakesManyPaths(t *testing.T) {
	eachTool(t, func(t *testing.T, box tool) {
		dir := t.TempDir()
		write(t, dir+"/a/b/c")
		write(t, dir+"/d")
		write(t, dir+"/e/stays")
		write(t, dir+"/e/f/g")
		code, _ := box.run(t, boxtool.Remove, dir+"/a", dir+"/missing", dir+"/missing/too", "/"+dir+"//d", dir+"/e/f//")
		left, err := filepath.Glob(dir + "/*/*")
		must(t, err)
		if _, err := os.Lstat(dir + "/d"); code != 0 || len(left) != 1 || err == nil {
			t.Errorf("exit code %d, left %v, d: %v; want only e/stays", code, left, err)
		}
	})
}

func TestRemoveFollowsNoSymlink(t *testing.T) {
	eachTool(t, func(t *testing.T, box tool) {
		dir := t.TempDir()
		write(t, dir+"/outside/kept")
		must(t, os.Symlink(dir+"/outside", dir+"/link"))
		write(t, dir+"/tree/f")
		must(t, os.Symlink(dir+"/outside", dir+"/tree/dir"))
		must(t, os.Symlink(dir+"/outside/kept", dir+"/tree/file"))

		for _, path := range []string{"/tree", "/link"} {
			if code, _ := box.run(t, boxtool.Remove, dir+path); code != 0 {
				t.Errorf("%s: exit code %d", path, code)
			}
			if _, err := os.Lstat(dir + path); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", path, err)
			}
		}
		must(t, os.Symlink("outside", dir+"/link"))
		if code, _ := box.run(t, boxtool.Remove, dir+"/link/kept"); syscall.Errno(code) != syscall.ENOTDIR {
			t.Errorf("through a link: exit code %d, want ENOTDIR", code)
		}
		if _, err := os.Stat(dir + "/outside/kept"); err != nil {
			t.Error(err)
		}
	})
}

func TestRemoveSaysWhyItCannot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("running as another user than the files' owner needs root")
	}
	eachTool(t, func(t *testing.T, box tool) {
		dir, err := os.MkdirTemp("", "boxtool-users-")
		must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		must(t, os.Chmod(dir, 0o755))
		write(t, dir+"/closed/f")
		must(t, os.Mkdir(dir+"/own", 0o755))
		must(t, os.Mkdir(dir+"/open", 0o777))
		must(t, os.Chmod(dir+"/open", 0o777))
		write(t, dir+"/open/sub/f")
		must(t, os.Mkdir(dir+"/open/empty", 0o755))
		for path, want := range map[string]syscall.Errno{
			dir + "/closed":     syscall.EACCES,
			dir + "/closed/f":   syscall.EACCES,
			dir + "/open/sub":   syscall.EACCES,
			dir + "/open/empty": 0,
			"/proc/1/stat":      syscall.EPERM,
		} {
			cmd := box.command(t, boxtool.Remove, path)
			cmd.SysProcAttr = nobody()
			if code, _ := finish(t, cmd); syscall.Errno(code) != want {
				t.Errorf("%s: exit code %d, want %d (%v)", path, code, int(want), want)
			}
		}
	})
}
