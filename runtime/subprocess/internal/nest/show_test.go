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
			name: "a bin of a person alone",
			tree: []string{"person/bin/tool", "person/.ssh/id", "person/lib/x"},
			path: []string{"person/bin"},
			show: []string{"person/bin"},
		}, {
			name: "a bin without an installation around it",
			tree: []string{"person/.cargo/bin/cargo", "person/.cargo/credentials.toml"},
			path: []string{"person/.cargo/bin"},
			show: []string{"person/.cargo/bin"},
		}, {
			name: "a version manager",
			tree: []string{"person/.pyenv/shims/python", "person/.pyenv/libexec/pyenv", "person/.pyenv/versions/3/bin/python"},
			path: []string{"person/.pyenv/shims"},
			show: []string{"person/.pyenv"},
		}, {
			name: "of .local not the personal part",
			tree: []string{"person/.local/bin/tool", "person/.local/lib/python/x", "person/.local/share/keyrings/login"},
			path: []string{"person/.local/bin"},
			show: []string{"person/.local/bin", "person/.local/lib"},
		}, {
			name: "symlinks to installations, of installations",
			tree: []string{
				"person/.local/bin/tool -> ../share/tools/tool/bin/tool", "person/.local/share/tools/tool/bin/tool",
				"person/.local/share/tools/tool/pyvenv.cfg", "person/.local/share/secret",
				"person/.local/share/tools/tool/bin/python -> $R/person/pythons/3/bin/python3", "person/pythons/3/bin/python3", "person/pythons/3/lib/x",
			},
			path: []string{"person/.local/bin"},
			show: []string{"person/.local/bin", "person/.local/share/tools/tool", "person/pythons/3"},
			links: map[string]string{
				"person/.local/bin/tool":                    "../share/tools/tool/bin/tool",
				"person/.local/share/tools/tool/bin/python": "$R/person/pythons/3/bin/python3",
			},
		}, {
			name: "a system program that leads into a home",
			tree: []string{"usr/bin/python -> $R/person/py/bin/python", "person/py/bin/python", "person/py/lib/x"},
			path: []string{"usr/bin"},
			show: []string{"person/py"},
		}, {
			name: "a script's interpreter",
			tree: []string{"opt/bin/tool! $R/person/venv/bin/python -u", "person/venv/bin/python", "person/venv/pyvenv.cfg"},
			path: []string{"opt/bin"},
			show: []string{"person/venv"},
		}, {
			name:    "what was asked for, through symlinks",
			tree:    []string{"person/current -> releases/7", "person/releases/7/x", "person/secret"},
			visible: []string{"person/current"},
			show:    []string{"person/releases/7"},
			links:   map[string]string{"person/current": "releases/7"},
		}, {
			name: "what isn't there",
			tree: []string{"person/loop -> loop", "person/b/dangling -> nowhere"},
			path: []string{"person/loop", "person/none", "person/b"},
			show: []string{"person/b"},
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
			got := Show(strings.Join(abs(test.path), ":"), []string{filepath.Join(root, "person")}, abs(test.visible))
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
