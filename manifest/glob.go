// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"path"
	"strings"
	"unicode/utf8"
)

// Match says whether a task is selected: one of Tasks matches it, or there are none,
// and none of Exclude does. Limit is the caller's.
//
// In a glob * is any text, "/" too, ?
// is one character, [a-z] one of a class, [!a-z] one outside it, and \ takes the
// next character as it is.
func (s Select) Match(id string) bool {
	return (len(s.Tasks) == 0 || matchAny(s.Tasks, id)) && !matchAny(s.Exclude, id)
}

func matchAny(globs []string, s string) bool {
	for _, g := range globs {
		if MatchGlob(g, s) {
			return true
		}
	}
	return false
}

// MatchGlob matches the whole of s with a glob in the syntax of [Select.Match]. A glob
// that loading would refuse matches nothing.
//
// It goes back to the last * only, so its time is at most the product of the
// two lengths.
func MatchGlob(glob, s string) bool {
	star, resume := "", ""
	starred := false
	for s != "" || glob != "" {
		if strings.HasPrefix(glob, "*") {
			glob = glob[1:]
			star, resume, starred = glob, s, true
			continue
		}
		if glob != "" && s != "" {
			_, size := utf8.DecodeRuneInString(s)
			if n, ok := matchOne(glob, s[:size]); ok {
				glob, s = glob[n:], s[size:]
				continue
			}
		}
		if !starred || resume == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(resume)
		resume = resume[size:]
		glob, s = star, resume
	}
	return true
}

// matchOne matches the first element of a glob, which isn't *, with one character, and
// returns its length. An element that isn't complete matches nothing.
func matchOne(glob, char string) (int, bool) {
	switch glob[0] {
	case '?':
		return 1, true
	case '[':
		n, in, err := class(glob, char)
		return n, err == nil && in
	case '\\':
		if len(glob) == 1 {
			return 0, false
		}
		return 1 + len(char), strings.HasPrefix(glob[1:], char)
	}
	return len(char), strings.HasPrefix(glob, char)
}

var errClass = errors.New("has a [ without its ]; write [[] for the character itself")

// class reads [abc], [a-z] and [!a-z] at the start of glob. A ] that comes first
// belongs to the class.
func class(glob, char string) (n int, in bool, err error) {
	c, _ := utf8.DecodeRuneInString(char)
	i, not := 1, false
	if i < len(glob) && (glob[i] == '!' || glob[i] == '^') {
		i, not = i+1, true
	}
	for first := true; ; first = false {
		if i >= len(glob) {
			return 0, false, errClass
		}
		if glob[i] == ']' && !first {
			return i + 1, in != not, nil
		}
		low, size := utf8.DecodeRuneInString(glob[i:])
		i += size
		high := low
		if strings.HasPrefix(glob[i:], "-") && i+1 < len(glob) && glob[i+1] != ']' {
			high, size = utf8.DecodeRuneInString(glob[i+1:])
			i += 1 + size
		}
		if low > high {
			return 0, false, errors.New("has a range that runs backwards")
		}
		in = in || (low <= c && c <= high)
	}
}

// checkGlob says what is wrong with a glob.
func checkGlob(glob string) error {
	if glob == "" {
		return errors.New("is empty")
	}
	for glob != "" {
		n := 1
		switch glob[0] {
		case '[':
			var err error
			if n, _, err = class(glob, "x"); err != nil {
				return err
			}
		case '\\':
			if len(glob) == 1 {
				return errors.New(`ends with a lone \`)
			}
			n = 2
		}
		glob = glob[n:]
	}
	return nil
}

// GlobLiteral returns the only text that a glob matches, if there is but one.
func GlobLiteral(glob string) (text string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			if i++; i == len(glob) {
				return "", false
			}
		}
		b.WriteByte(glob[i])
	}
	return b.String(), true
}

func checkGlobs(d *decoder, entry string, globs []string) {
	for i, g := range globs {
		if err := checkGlob(g); err != nil {
			d.problem(index(entry, i), "pattern "+quote(g)+" "+err.Error(), "")
		}
	}
}

// checkRelativeGlobs checks globs over files in the workdir.
func checkRelativeGlobs(d *decoder, entry string, globs []string) {
	checkGlobs(d, entry, globs)
	for i, g := range globs {
		if strings.HasPrefix(g, "/") || g == ".." || strings.HasPrefix(path.Clean(g), "../") || strings.Contains(g+"/", "/../") {
			d.problem(index(entry, i), "pattern "+quote(g)+" leaves the workdir", "write paths relative to the workdir")
		}
	}
}
