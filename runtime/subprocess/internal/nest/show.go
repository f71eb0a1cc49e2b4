// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Shown is what is seen inside hidden directories: see [View].
type Shown struct {
	Paths []string
	Links map[string]string
}

// Show works out what has to be shown so that the programs in PATH still work although
// directories are hidden, and what was asked for by name.
//
//   - An entry of PATH is shown itself. If it is called bin, sbin, libexec or shims and the
//     directory above looks like an installation, which has lib, lib64, libexec,
//     pyvenv.cfg or conda-meta, that is shown as a whole. A hidden directory itself never
//     is, and of ~/.local only bin, lib, lib64 and libexec are: the rest is personal.
//   - So are the places where the symlinks in it lead, and the interpreters that its
//     scripts name in their first line.
//
// Other paths are shown as they are. All of it is read-only. ~/.cargo/bin is an example of
// an entry that is shown alone: what rustup's programs need beyond it has to be asked
// for.
func Show(path string, hide, visible []string) Shown {
	s := &shower{hide: hide, paths: map[string]bool{}, links: map[string]string{}, seen: map[string]bool{}}
	for _, entry := range filepath.SplitList(path) {
		if filepath.IsAbs(entry) {
			s.programs(entry, 0)
		}
	}
	for _, p := range visible {
		if real, ok := s.trace(p); ok {
			s.add(real)
		}
	}
	return Shown{Paths: s.outermost(), Links: s.links}
}

// outermost leaves out what is shown with a directory around it, unless something in
// between is hidden.
func (s *shower) outermost() []string {
	var kept []string
	for _, path := range slices.Sorted(maps.Keys(s.paths)) {
		if !slices.ContainsFunc(kept, func(around string) bool {
			return under(path, around) && !slices.ContainsFunc(s.hide, func(h string) bool { return under(h, around) && under(path, h) })
		}) {
			kept = append(kept, path)
		}
	}
	return kept
}

// under tells whether a path is a directory or inside it.
func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

type shower struct {
	hide  []string
	paths map[string]bool
	links map[string]string
	seen  map[string]bool // directories of programs
}

func (s *shower) hidden(path string) bool {
	return slices.ContainsFunc(s.hide, func(h string) bool { return under(path, h) })
}

func (s *shower) add(real string) {
	if s.hidden(real) {
		s.paths[real] = true
	}
}

// trace resolves a path and notes the symlinks in hidden directories that are passed on
// the way.
func (s *shower) trace(path string) (string, bool) {
	at, rest := "/", strings.Split(filepath.Clean(path), "/")
	links := map[string]string{}
	for hops := 0; len(rest) > 0; {
		step := rest[0]
		rest = rest[1:]
		if step == "" || step == "." {
			continue
		}
		next := filepath.Join(at, step)
		info, err := os.Lstat(next)
		if err != nil {
			return "", false
		}
		if info.Mode().Type() != fs.ModeSymlink {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if hops++; err != nil || hops > 40 {
			return "", false
		}
		if s.hidden(next) {
			links[next] = target
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	maps.Copy(s.links, links)
	return at, true
}

// installation tells the directory that a program's directory belongs to.
func (s *shower) installation(bin string) []string {
	top := filepath.Dir(bin)
	named := slices.Contains([]string{"bin", "sbin", "libexec", "shims"}, filepath.Base(bin))
	if !named || slices.Contains(s.hide, top) {
		return []string{bin}
	}
	parts := []string{bin}
	whole := false
	for _, name := range []string{"lib", "lib64", "libexec", "pyvenv.cfg", "conda-meta"} {
		if _, err := os.Lstat(filepath.Join(top, name)); err == nil {
			whole = true
			parts = append(parts, filepath.Join(top, name))
		}
	}
	if whole && filepath.Base(top) != ".local" {
		return []string{top}
	}
	return parts
}

const (
	programsMax = 10000 // of one directory
	programsHop = 4     // from a PATH entry to what it needs
)

// programs shows a directory of programs and what they need.
func (s *shower) programs(dir string, hop int) {
	real, ok := s.trace(dir)
	if !ok || s.seen[real] || hop > programsHop {
		return
	}
	s.seen[real] = true
	if s.hidden(real) {
		for _, part := range s.installation(real) {
			s.add(part)
		}
	}
	f, err := os.Open(real)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(programsMax)
	f.Close()
	// A system's own programs have system interpreters.
	system := real == "/usr/bin" || real == "/usr/sbin" || real == "/bin" || real == "/sbin"
	for _, e := range entries {
		name := filepath.Join(real, e.Name())
		needs := name
		switch e.Type() {
		case fs.ModeSymlink:
		case 0:
			if system {
				continue
			}
			if needs = interpreter(name); needs == "" {
				continue
			}
		default:
			continue
		}
		target, ok := s.peek(needs)
		if ok && s.hidden(target) {
			_, _ = s.trace(needs)
			s.programs(filepath.Dir(target), hop+1)
			if needs != name { // the interpreter may itself be a symlink in a bin
				s.programs(filepath.Dir(needs), hop+1)
			}
		}
	}
}

// peek resolves a path without noting anything.
func (s *shower) peek(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	return real, err == nil
}

// interpreter returns what a script's first line names.
func interpreter(script string) string {
	f, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, 256)
	n, _ := io.ReadFull(f, buf) // a short script is a script
	line, ok := bytes.CutPrefix(buf[:n], []byte("#!"))
	if !ok {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) == 0 || !filepath.IsAbs(fields[0]) {
		return ""
	}
	return fields[0]
}
