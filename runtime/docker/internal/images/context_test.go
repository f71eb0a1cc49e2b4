// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// contextOf opens a directory as a build context with small limits.
func contextOf(t testing.TB, dir, dockerfile string) *buildContext {
	t.Helper()
	s := newStore(t, nil, func(c *Config) { c.ContextBytes, c.ContextEntries = 1000, 20 })
	bc, err := s.openContext(dir, dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	return bc
}

func TestTheContextIsSentAsItIs(t *testing.T) {
	dir := tree(t, map[string]string{
		"Dockerfile": "FROM scratch\n", "!run": "x", "d/": "", "d/f": "y", "out": "-> ../../etc/passwd", "d/up": "-> ../run",
		"loop": "-> .",
	})
	if err := os.Chmod(filepath.Join(dir, "run"), 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var sent bytes.Buffer
	if err := contextOf(t, dir, "").write(t.Context(), &sent); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0 Dockerfile 644 FROM scratch\n", "5 d/ 755 ", "0 d/f 644 y", "2 d/up 777 ../run", "2 loop 777 .",
		"2 out 777 ../../etc/passwd", "0 run 4755 x",
	}
	if diff := cmp.Diff(want, entries(t, &sent)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// entries lists a tar stream: kind, name, mode, and content or target.
func entries(t testing.TB, r io.Reader) []string {
	t.Helper()
	var out []string
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(sentTime) {
			t.Errorf("%s belongs to %d:%d and is of %v; want root's and one fixed time", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		out = append(out, fmt.Sprintf("%c %s %o %s%s", h.Typeflag, h.Name, h.Mode, h.Linkname, data))
	}
}

func TestTheDigestIsOfNamesModesAndContents(t *testing.T) {
	files := func() map[string]string {
		return map[string]string{"Dockerfile": "FROM scratch\n", "a": "1", "b": "2", "d/": "", "l": "-> a", ".dockerignore": "ignored\n", "ignored": "x"}
	}
	digest := func(dir, dockerfile string) string {
		d, err := contextOf(t, dir, dockerfile).digest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := digest(tree(t, files()), "")
	for name, row := range map[string]struct {
		edit       func(dir string) error
		dockerfile string
		same       bool
	}{
		"nothing":       {edit: func(string) error { return nil }, same: true},
		"its name said": {edit: func(string) error { return nil }, dockerfile: "Dockerfile", same: true},
		"times": {edit: func(dir string) error {
			return os.Chtimes(filepath.Join(dir, "a"), time.Unix(1, 0), time.Unix(1, 0))
		}, same: true},
		"an ignored file":    {edit: func(dir string) error { return os.WriteFile(filepath.Join(dir, "ignored"), []byte("y"), 0o600) }, same: true},
		"owner":              {edit: func(dir string) error { return chown(filepath.Join(dir, "a")) }, same: true},
		"mode":               {edit: func(dir string) error { return os.Chmod(filepath.Join(dir, "a"), 0o755) }},
		"content":            {edit: func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("3"), 0o644) }},
		"name":               {edit: func(dir string) error { return os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c")) }},
		"an empty directory": {edit: func(dir string) error { return os.Remove(filepath.Join(dir, "d")) }},
		"where a link points": {edit: func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "l")), os.Symlink("b", filepath.Join(dir, "l")))
		}},
		"a link made a file": {edit: func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "l")), os.WriteFile(filepath.Join(dir, "l"), []byte("1"), 0o644))
		}},
		"another Dockerfile": {edit: func(string) error { return nil }, dockerfile: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, files())
			if err := row.edit(dir); err != nil {
				t.Fatal(err)
			}
			if got := digest(dir, row.dockerfile) == base; got != row.same {
				t.Errorf("the digest is the same: %v; want %v", got, row.same)
			}
		})
	}
}

// chown needs root; without it the owner stays.
func chown(path string) error {
	if err := os.Chown(path, 12, 34); err != nil && !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}

func TestWhatIsIgnored(t *testing.T) {
	for name, row := range map[string]struct {
		ignore     string
		dockerfile string
		extra      map[string]string
		want       []string
	}{
		"a directory":          {"d\n", "", nil, []string{".dockerignore", "Dockerfile", "a.txt", "e/", "e/g.txt"}},
		"a pattern, not here":  {"*.txt\n# all\n", "", nil, []string{".dockerignore", "Dockerfile", "d/", "d/f.txt", "e/", "e/g.txt"}},
		"a pattern everywhere": {"**/*.txt\n", "", nil, []string{".dockerignore", "Dockerfile", "d/", "e/"}},
		"all but one":          {"*\n!d/f.txt\n", "", nil, []string{".dockerignore", "Dockerfile", "d/f.txt"}},
		"an inner Dockerfile":  {"*\n", "e/Docker", map[string]string{"e/Docker": "FROM scratch"}, []string{".dockerignore", "e/Docker"}},
		"one for a Dockerfile": {"*\n", "", map[string]string{"Dockerfile.dockerignore": "d\ne\n*ignore\n"}, []string{".dockerignore", "Dockerfile", "a.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{
				"Dockerfile": "FROM scratch", ".dockerignore": row.ignore, "a.txt": "", "d/f.txt": "", "e/g.txt": "",
			}
			for k, v := range row.extra {
				files[k] = v
			}
			var sent bytes.Buffer
			if err := contextOf(t, tree(t, files), row.dockerfile).write(t.Context(), &sent); err != nil {
				t.Fatal(err)
			}
			var got []string
			for tr := tar.NewReader(&sent); ; {
				h, err := tr.Next()
				if err != nil {
					break
				}
				got = append(got, h.Name)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContextsHaveLimits(t *testing.T) {
	many := map[string]string{"Dockerfile": "FROM scratch"}
	for i := range 20 {
		many[fmt.Sprint("f", i)] = ""
	}
	for name, row := range map[string]struct {
		files map[string]string
		text  string
	}{
		"bytes":     {map[string]string{"Dockerfile": "FROM scratch", "big": string(make([]byte, 1001))}, "larger than 1000 bytes, at big (1001 bytes): leave some out with .dockerignore"},
		"entries":   {many, "more than 20 entries"},
		"a pattern": {map[string]string{"Dockerfile": "FROM scratch", ".dockerignore": "[\n"}, ".dockerignore"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := contextOf(t, tree(t, row.files), "").digest(t.Context())
			if _, permanent := errors.AsType[permanentError](err); !permanent || !contains(err.Error(), row.text) {
				t.Errorf("error %v; want a permanent one that says %q", err, row.text)
			}
		})
	}
}

// Between looking at a file and opening it something else may take its place.
func TestWhatTookAFilesPlaceIsNotFollowed(t *testing.T) {
	dir := tree(t, map[string]string{"Dockerfile": "FROM scratch", "link": "-> Dockerfile"})
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	bc := contextOf(t, dir, "")
	for _, name := range []string{"link", "fifo"} {
		var sent bytes.Buffer
		left := int64(1000)
		if err := bc.file(tar.NewWriter(&sent), filepath.Join(dir, name), &tar.Header{Name: name}, &left); err == nil || sent.Len() > 0 {
			t.Errorf("%s: error %v, %d bytes sent; want an error and none", name, err, sent.Len())
		}
	}
}
