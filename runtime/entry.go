// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"archive/tar"
	"fmt"
	"path"
	"slices"
	"strings"
)

// What CopyIn and CopyOut accept is the same in every runtime, so it is decided here.

// CleanPath accepts a path that is relative and has no "..", and returns it cleaned;
// the empty one is the place itself. Others are a [PathError].
func CleanPath(p string) (string, error) {
	switch {
	case p == "":
		return ".", nil
	case strings.HasPrefix(p, "/"):
		return "", &PathError{Path: p, Reason: "is absolute: want one relative to the place"}
	case slices.Contains(strings.Split(p, "/"), ".."):
		return "", &PathError{Path: p, Reason: `has "..": want one that stays inside its place`}
	case strings.Contains(p, "\x00"):
		return "", &PathError{Path: p, Reason: "has a NUL byte"}
	}
	return path.Clean(p), nil
}

// LinkProblem says what is wrong with where a symlink points. A target that climbs by
// no more ".." than the link is deep, and only before it descends, stays inside
// however it is reached: no entry is written through a symlink, so the link is where
// its name says, and each symlink on the way down has been checked in the same way.
// With ".." behind a name that wouldn't hold, for the name may be a symlink. Empty means
// that nothing is wrong.
func LinkProblem(name, target string) string {
	if target == "" || strings.HasPrefix(target, "/") || strings.Contains(target, "\x00") {
		return fmt.Sprintf("is a symlink to %q: want a relative target", target)
	}
	depth := strings.Count(name, "/")
	down := false
	for step := range strings.SplitSeq(target, "/") {
		switch step {
		case "", ".":
		case "..":
			if depth--; depth < 0 || down {
				return fmt.Sprintf("is a symlink to %q: want a target inside the place, with .. only at its start", target)
			}
		default:
			down = true
		}
	}
	return ""
}

// EntryKind is the word for a kind of tar entry that isn't copied.
func EntryKind(flag byte) string {
	switch flag {
	case tar.TypeLink:
		return "hard link"
	case tar.TypeChar, tar.TypeBlock:
		return "device"
	case tar.TypeFifo:
		return "fifo"
	}
	return fmt.Sprintf("thing of type %q", flag)
}
