// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseGroups(t *testing.T) {
	for name, test := range map[string]struct {
		mountinfo, cgroup string
		want              ownGroups
	}{
		"version 1": {
			mountinfo: `
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd`,
			cgroup: "9:name=systemd:/\n8:pids:/\n4:memory:/a/b\n1:cpu:/\n",
			want: ownGroups{v1: map[string]string{
				"memory": "/sys/fs/cgroup/memory/a/b", "pids": "/sys/fs/cgroup/pids",
			}},
		},
		"version 2": {
			mountinfo: "30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			cgroup:    "0::/user.slice/user-1000.slice/session-3.scope\n",
			want:      ownGroups{v1: map[string]string{}, v2: "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope"},
		},
		"both, two controllers in one hierarchy": {
			mountinfo: `
35 31 0:32 / /cg/both rw,relatime - cgroup cgroup rw,memory,pids
41 31 0:38 / /cg/unified rw,relatime - cgroup2 cgroup2 rw`,
			cgroup: "4:memory,pids:/x\n0::/\n",
			want:   ownGroups{v1: map[string]string{"memory": "/cg/both/x", "pids": "/cg/both/x"}, v2: "/cg/unified"},
		},
		"in a container": {
			mountinfo: "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n",
			cgroup:    "4:memory:/docker/abc/nested\n",
			want:      ownGroups{v1: map[string]string{"memory": "/sys/fs/cgroup/memory/nested"}},
		},
		"mounted from somewhere else": {
			mountinfo: "35 31 0:32 /other /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			cgroup:    "4:memory:/docker/abc\n",
			want:      ownGroups{v1: map[string]string{}},
		},
		"nothing": {want: ownGroups{v1: map[string]string{}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseGroups(test.mountinfo, test.cgroup)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(ownGroups{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseGroups(f *testing.F) {
	f.Add("30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/a\n")
	f.Add("35 31 0:32 /../x /sys rw - cgroup cgroup rw,memory\n", "4:memory:/../..\n")
	f.Fuzz(func(t *testing.T, mountinfo, cgroup string) {
		got := parseGroups(mountinfo, cgroup)
		for c := range got.v1 {
			if c != "memory" && c != "pids" {
				t.Errorf("a controller %q", c)
			}
		}
	})
}

func FuzzSocketPaths(f *testing.F) {
	f.Add("Num RefCount Protocol Flags Type St Inode Path\n0000: 00000002 00000000 00010000 0001 01 21 /run/a b\n000: 2 0 1 1 1 22 @abstract\n")
	f.Fuzz(func(t *testing.T, list string) {
		for _, p := range socketPaths(list) {
			if !strings.HasPrefix(p, "/") {
				t.Errorf("path %q", p)
			}
		}
	})
}

// fakeGroup is a directory that looks like a group of version 2. What is written to it
// shows what would have been asked of the kernel.
func fakeGroup(t *testing.T, dir, controllers, enabled string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": enabled} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPickGroups(t *testing.T) {
	parent := fakeGroup(t, filepath.Join(t.TempDir(), "slice"), "cpu memory pids\n", "cpu memory\n")
	own := fakeGroup(t, filepath.Join(parent, "scope"), "memory\n", "")
	given := fakeGroup(t, filepath.Join(parent, "given"), "memory pids\n", "memory pids\n")
	v1 := t.TempDir()

	// The own one lacks a controller; the parent only has to be told.
	if g := pickGroups(ownGroups{v2: own}, ""); g.v2 != parent || len(g.reason) > 0 {
		t.Errorf("%+v, want the parent", g)
	}
	if data, _ := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control")); string(data) != "+pids" {
		t.Errorf("told %q, want +pids", data)
	}
	if g := pickGroups(ownGroups{v2: own}, given); g.v2 != given {
		t.Errorf("%+v, want the given one", g)
	}
	if g := pickGroups(ownGroups{v1: map[string]string{"memory": v1, "pids": v1}, v2: own}, ""); g.v2 != "" || g.v1["memory"] != v1 {
		t.Errorf("%+v, want version 1 where that has both", g)
	}
	lonely := fakeGroup(t, filepath.Join(t.TempDir(), "a", "b"), "cpu\n", "")
	g := pickGroups(ownGroups{v2: lonely}, "")
	h := g.hello()
	if g.v2 != "" || !strings.Contains(h.NoMemory, "Delegate=yes") || !strings.Contains(h.NoPids, "Delegate=yes") {
		t.Errorf("%+v, want reasons that say what to do", h)
	}
	if g := pickGroups(ownGroups{v1: map[string]string{"memory": v1}}, ""); g.v1["memory"] == "" || g.reason["pids"] == "" {
		t.Errorf("%+v, want memory and a reason for pids", g)
	}
}

func TestRemoveGroup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "other")
	for _, d := range []string{dir, groupDir(filepath.Dir(dir), "x")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := RemoveGroup(d); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("what is no nest's was removed: %v", err)
	}
	if _, err := os.Stat(groupDir(filepath.Dir(dir), "x")); err == nil {
		t.Error("a nest's was not removed")
	}
}

func TestErrorsOverTheWire(t *testing.T) {
	for _, err := range []error{
		&StartError{Name: "x", Err: &os.PathError{Op: "open", Path: "/y", Err: syscall.ENOENT}}, errors.New("plain"), syscall.EAGAIN,
	} {
		back := fromWire(toWire(err))
		if back.Error() != err.Error() || errors.Is(err, syscall.ENOENT) != errors.Is(back, syscall.ENOENT) || errors.Is(err, syscall.EAGAIN) != errors.Is(back, syscall.EAGAIN) {
			t.Errorf("%v became %v", err, back)
		}
	}
	if fromWire(toWire(nil)) != nil {
		t.Error("no error became one")
	}
}
