// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// entry is one member of an archive. Names are relative, with slashes.
type entry struct {
	name string
	mode fs.FileMode // 0644 or 0755, and the type
	size int64
	link string
	// open reads what isn't in the directory under this name.
	open func() (io.ReadCloser, error)
}

// scanTree lists a directory in the order of the archive. skip, which may be nil,
// leaves out entries by name.
func scanTree(ctx context.Context, dir string, o ArchiveOptions, skip func(name string) bool) ([]entry, error) {
	var entries []entry
	var total int64
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if name == "." {
			if !d.IsDir() {
				return errors.New("is not a directory")
			}
			return nil
		}
		if d.Name() == ".git" || skip != nil && skip(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		e, err := describeEntry(p, name, d)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		entries = append(entries, e)
		total += e.size
		return checkSize(o, len(entries), total)
	})
	if err != nil {
		return nil, err
	}
	sortEntries(entries)
	return entries, nil
}

func checkSize(o ArchiveOptions, entries int, bytes int64) error {
	if entries > o.MaxEntries {
		return fmt.Errorf("%w of %d entries", ErrTooLarge, o.MaxEntries)
	}
	if bytes > o.MaxBytes {
		return fmt.Errorf("%w of %d bytes", ErrTooLarge, o.MaxBytes)
	}
	return nil
}

// sortEntries orders by path elements, so that a directory comes before what is in it
// and its content is not torn apart by siblings.
func sortEntries(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return comparePaths(a.name, b.name) })
}

func comparePaths(a, b string) int {
	for {
		x, restA, moreA := strings.Cut(a, "/")
		y, restB, moreB := strings.Cut(b, "/")
		if c := cmp.Compare(x, y); c != 0 || !moreA || !moreB {
			return cmp.Or(c, cmp.Compare(restA, restB))
		}
		a, b = restA, restB
	}
}

func describeEntry(p, name string, d fs.DirEntry) (entry, error) {
	if !utf8.ValidString(name) {
		return entry{}, errors.New("the name is not valid UTF-8")
	}
	info, err := d.Info()
	if err != nil {
		return entry{}, err
	}
	e := entry{name: name, mode: 0o644}
	switch mode := info.Mode(); {
	case mode.IsDir():
		e.mode = fs.ModeDir | 0o755
	case mode.IsRegular():
		e.size = info.Size()
		if mode&0o111 != 0 {
			e.mode = 0o755
		}
	case mode&fs.ModeSymlink != 0:
		e.mode = fs.ModeSymlink | 0o777
		if e.link, err = os.Readlink(p); err != nil {
			return entry{}, err
		}
		return e, checkLink(name, e.link)
	default:
		return entry{}, fmt.Errorf("is %s; only files, directories and symlinks can be archived", kindOf(mode))
	}
	return e, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// checkLink refuses a symlink that may lead out of the tree. After the first real
// element no .. is allowed: behind another symlink it would mean another directory than
// the text says.
func checkLink(name, target string) error {
	if target == "" || strings.HasPrefix(target, "/") || strings.Contains(target, `\`) || !utf8.ValidString(target) {
		return fmt.Errorf("is a symlink to %s; only relative links inside the directory can be archived", quote(target))
	}
	up, down := 0, false
	for _, element := range strings.Split(target, "/") {
		switch element {
		case "..":
			up++
			if down {
				return fmt.Errorf("is a symlink to %s; .. may only come first", quote(target))
			}
		case ".", "":
		default:
			down = true
		}
	}
	depth := strings.Count(path.Clean(name), "/")
	if up > depth {
		return fmt.Errorf("is a symlink to %s, which leaves the directory", quote(target))
	}
	return nil
}
