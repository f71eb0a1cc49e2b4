// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"path/filepath"
	"strings"
)

// MaxName is how long the path of a bundle's file may be; with what stands before it in
// a key it stays below the 900 bytes of a key.
const MaxName = 600

// EscapeName makes the slash-separated, relative name of a file the path that a bundle
// lists and stores it under: each segment goes through [EscapeSegment]. Any bytes may
// stand in a segment, but not "." or "..", which would mean another place.
//
// A path that would be longer than [MaxName] becomes the first segment and a hash; the
// index then holds the name too, see [IndexEntry.RealName].
func EscapeName(name string) (string, error) {
	_, path, err := escapeName(name)
	return path, err
}

func escapeName(name string) (full, path string, err error) {
	segs := strings.Split(name, "/")
	for i, seg := range segs {
		if seg == "" || seg == "." || seg == ".." {
			return "", "", fmt.Errorf("%w: file name %.200q: want a relative path without empty, . and .. segments", ErrInvalidKey, name)
		}
		segs[i] = EscapeSegment(seg)
	}
	full = strings.Join(segs, "/")
	return full, shortenName(full), nil
}

// shortenName keeps an escaped name below the limit. No escaped segment starts with ~~.
func shortenName(full string) string {
	if len(full) <= MaxName {
		return full
	}
	top, _, _ := strings.Cut(full, "/")
	if len(top) > MaxName/2 {
		top = "long"
	}
	return top + "/~~" + hexSum([]byte(full))
}

// UnescapeName undoes EscapeName, where the path isn't that of a long name.
func UnescapeName(path string) (string, error) {
	segs := strings.Split(path, "/")
	for i, seg := range segs {
		name, err := UnescapeSegment(seg)
		if err != nil {
			return "", err
		}
		segs[i] = name
	}
	return strings.Join(segs, "/"), nil
}

// maxLocal is where a segment is cut on disk: names there hold 255 bytes.
const maxLocal = 200

// LocalPath is how a key is spelled as a relative path on disk. It is the key itself,
// but for segments that no file system would take: these are cut, and each piece but
// the last becomes a directory that ends in "+", which no key contains.
func LocalPath(key string) string {
	if len(key) <= maxLocal {
		return filepath.FromSlash(key) // no segment is longer
	}
	segs := strings.Split(key, "/")
	for i, seg := range segs {
		var b strings.Builder
		for len(seg) > maxLocal {
			b.WriteString(seg[:maxLocal])
			b.WriteString("+/")
			seg = seg[maxLocal:]
		}
		b.WriteString(seg)
		segs[i] = b.String()
	}
	return filepath.FromSlash(strings.Join(segs, "/"))
}
