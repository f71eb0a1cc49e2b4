// SPDX-License-Identifier: Apache-2.0

package watermark

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryOfGroups(t *testing.T) {
	const meminfo = "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 8000 kB\n"
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no groups", nil, 8000 << 10},
		{"the old kind of groups", map[string]string{"proc/self/cgroup": "4:memory:/a\n"}, 8000 << 10},
		{"no limit", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.current": "5\n",
		}, 8000 << 10},
		{"its own limit", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "4096\n", "sys/fs/cgroup/a/b/memory.current": "4000\n",
			"sys/fs/cgroup/a/b/memory.stat": "anon 1\ninactive_file 904\n",
		}, 1000},
		{"one above it", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.current": "5\n",
			"sys/fs/cgroup/a/memory.max": "100\n", "sys/fs/cgroup/a/memory.current": "120\n",
		}, 0},
		{"in a container, where it is the root", map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "500\n", "sys/fs/cgroup/memory.current": "100\n",
		}, 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			files := map[string]string{"proc/meminfo": meminfo}
			for name, body := range test.files {
				files[name] = body
			}
			for name, body := range files {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := memoryIn(root); err != nil || got != test.want {
				t.Errorf("%d, %v; want %d", got, err, test.want)
			}
		})
	}
	if _, err := memoryIn(t.TempDir()); err == nil {
		t.Error("without /proc/meminfo it knows the memory")
	}
}
