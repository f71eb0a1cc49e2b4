// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// tree makes files: "path -> target" is a symlink, "path!" a script with that
// interpreter after a space, "path/" a directory, all else a program.
func tree(t *testing.T, root string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		line = strings.ReplaceAll(line, "$R", root)
		name, target, link := strings.Cut(line, " -> ")
		name, shebang, script := strings.Cut(name, "! ")
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case link:
			err = os.Symlink(target, path)
		case script:
			err = os.WriteFile(path, []byte("#!"+shebang+"\nrest"), 0o755)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte("\x7fELF"), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestShow(t *testing.T) {
	for _, test := range []struct {
		name    string
		tree    []string
		path    []string
		visible []string
		show    []string
		links   map[string]string
	}{
		{
			name: "nothing hidden is shown",
			tree: []string{"usr/bin/sh", "usr/bin/awk -> sh"},
			path: []string{"usr/bin"},
		}, {
			name: "a bin of the home alone",
			tree: []string{"home/bin/tool", "home/.ssh/id", "home/lib/x"},
			path: []string{"home/bin"},
			show: []string{"home/bin"},
		}, {
			name: "a bin without an installation around it",
			tree: []string{"home/.cargo/bin/cargo", "home/.cargo/credentials.toml"},
			path: []string{"home/.cargo/bin"},
			show: []string{"home/.cargo/bin"},
		}, {
			name: "a version manager",
			tree: []string{"home/.pyenv/shims/python", "home/.pyenv/libexec/pyenv", "home/.pyenv/versions/3/bin/python"},
			path: []string{"home/.pyenv/shims"},
			show: []string{"home/.pyenv"},
		}, {
			name: "of .local not the personal part",
			tree: []string{"home/.local/bin/tool", "home/.local/lib/python/x", "home/.local/share/keyrings/login"},
			path: []string{"home/.local/bin"},
			show: []string{"home/.local/bin", "home/.local/lib"},
		}, {
			name: "symlinks to installations, of installations",
			tree: []string{
				"home/.local/bin/tool -> ../share/tools/tool/bin/tool", "home/.local/share/tools/tool/bin/tool",
				"home/.local/share/tools/tool/pyvenv.cfg", "home/.local/share/secret",
				"home/.local/share/tools/tool/bin/python -> $R/home/pythons/3/bin/python3", "home/pythons/3/bin/python3", "home/pythons/3/lib/x",
			},
			path: []string{"home/.local/bin"},
			show: []string{"home/.local/bin", "home/.local/share/tools/tool", "home/pythons/3"},
			links: map[string]string{
				"home/.local/bin/tool":                    "../share/tools/tool/bin/tool",
				"home/.local/share/tools/tool/bin/python": "$R/home/pythons/3/bin/python3",
			},
		}, {
			name: "a system program that leads into the home",
			tree: []string{"usr/bin/python -> $R/home/py/bin/python", "home/py/bin/python", "home/py/lib/x"},
			path: []string{"usr/bin"},
			show: []string{"home/py"},
		}, {
			name: "a script's interpreter",
			tree: []string{"opt/bin/tool! $R/home/venv/bin/python -u", "home/venv/bin/python", "home/venv/pyvenv.cfg"},
			path: []string{"opt/bin"},
			show: []string{"home/venv"},
		}, {
			name:    "what was asked for, through symlinks",
			tree:    []string{"home/current -> releases/7", "home/releases/7/x", "home/secret"},
			visible: []string{"home/current"},
			show:    []string{"home/releases/7"},
			links:   map[string]string{"home/current": "releases/7"},
		}, {
			name: "what isn't there",
			tree: []string{"home/loop -> loop", "home/b/dangling -> nowhere"},
			path: []string{"home/loop", "home/none", "home/b"},
			show: []string{"home/b"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			tree(t, root, test.tree...)
			abs := func(list []string) (out []string) {
				for _, p := range list {
					out = append(out, filepath.Join(root, p))
				}
				return out
			}
			want := Shown{Paths: abs(test.show), Links: map[string]string{}}
			for name, target := range test.links {
				want.Links[filepath.Join(root, name)] = strings.ReplaceAll(target, "$R", root)
			}
			got := Show(strings.Join(abs(test.path), ":"), []string{filepath.Join(root, "home")}, abs(test.visible))
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
