// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Conditions that a program meets in its file system.
var (
	errNoEntry    = errors.New("no such file or directory")
	errNotDir     = errors.New("not a directory")
	errIsDir      = errors.New("is a directory")
	errExists     = errors.New("file exists")
	errLoop       = errors.New("too many symbolic links")
	errPermission = errors.New("permission denied")
	errNoSpace    = errors.New("no space left on device")
	errIsLink     = errors.New("is a symlink, and symlinks are not followed")
)

type kind int

const (
	regular kind = iota
	directory
	symlink
	fifo
)

// node is a file. Its data is never changed in place, so that a reader may keep it.
type node struct {
	kind    kind
	exec    bool
	data    []byte
	zeros   int64 // so many zero bytes follow data; they cost no memory
	target  string
	entries map[string]*node
	only    string // the one user who may enter this directory; "" is everyone
}

func newDir() *node { return &node{kind: directory, entries: map[string]*node{}} }

func (n *node) size() int64 { return int64(len(n.data)) + n.zeros }

func (n *node) content() io.Reader {
	return io.MultiReader(bytes.NewReader(n.data), io.LimitReader(zeroReader{}, n.zeros))
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// memfs is the file system of a sandbox. Paths are absolute.
type memfs struct {
	mu    sync.Mutex
	root  *node
	limit int64 // bytes; 0 is none
}

func newMemfs(limit int64) *memfs { return &memfs{root: newDir(), limit: limit} }

// spot is where a path leads: the directory, the name in it, and what is there now.
type spot struct {
	dir  *node
	name string
	node *node // nil where nothing is
}

// walk resolves a path as a kernel does for a program of a user.
func (f *memfs) walk(user, path string, followLast bool) (spot, error) {
	stack := []*node{f.root}
	at := spot{dir: f.root, node: f.root}
	rest := strings.Split(path, "/")
	links := 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		dir := stack[len(stack)-1]
		if at.node == nil {
			return spot{}, errNoEntry
		}
		if dir != at.node {
			return spot{}, errNotDir
		}
		if name == ".." {
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
			at = spot{dir: stack[len(stack)-1], node: stack[len(stack)-1]}
			continue
		}
		if dir.only != "" && dir.only != user {
			return spot{}, errPermission
		}
		at = spot{dir: dir, name: name, node: dir.entries[name]}
		switch {
		case at.node == nil:
		case at.node.kind == directory:
			stack = append(stack, at.node)
		case at.node.kind == symlink && (followLast || hasName(rest)):
			if links++; links > 40 {
				return spot{}, errLoop
			}
			if strings.HasPrefix(at.node.target, "/") {
				stack = stack[:1]
			}
			rest = append(strings.Split(at.node.target, "/"), rest...)
			at = spot{dir: stack[len(stack)-1], node: stack[len(stack)-1]}
		}
	}
	return at, nil
}

func hasName(parts []string) bool {
	return slices.ContainsFunc(parts, func(s string) bool { return s != "" && s != "." })
}

// strict finds a path for a copy: it follows nothing. With create it makes missing
// directories. An empty path is the root.
func (f *memfs) strict(path string, create bool) (*node, error) {
	n := f.root
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." {
			continue
		}
		next := n.entries[name]
		if next == nil && create && n.kind == directory {
			next = newDir()
			n.entries[name] = next
		}
		switch {
		case n.kind == symlink:
			return nil, errIsLink
		case next == nil:
			return nil, errNoEntry
		}
		n = next
	}
	return n, nil
}

// usage is the sum of all files; the trees here are small.
func (n *node) usage() int64 {
	sum := n.size()
	for _, child := range n.entries {
		sum += child.usage()
	}
	return sum
}

// put stores a file's new content if there is room.
func (f *memfs) put(dir *node, name string, n *node) error {
	if f.limit > 0 {
		var old int64
		if now := dir.entries[name]; now != nil {
			old = now.usage()
		}
		if f.root.usage()-old+n.size() > f.limit {
			return errNoSpace
		}
	}
	dir.entries[name] = n
	return nil
}

func (f *memfs) at(user, path string, followLast bool, do func(spot) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.walk(user, path, followLast)
	if err == nil {
		err = do(s)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (f *memfs) read(user, path string) (n *node, err error) {
	err = f.at(user, path, true, func(s spot) error {
		switch {
		case s.node == nil:
			return errNoEntry
		case s.node.kind == directory:
			return errIsDir
		}
		n = s.node
		return nil
	})
	return n, err
}

func (f *memfs) write(user, path string, data []byte, more bool) error {
	return f.at(user, path, true, func(s spot) error {
		n := &node{data: data}
		if s.node != nil {
			if s.node.kind == directory {
				return errIsDir
			}
			n.exec = s.node.exec
			if more {
				n.data = slices.Concat(s.node.data, make([]byte, s.node.zeros), data)
			}
		}
		return f.put(s.dir, s.name, n)
	})
}

func (f *memfs) create(user, path string, n *node) error {
	return f.at(user, path, false, func(s spot) error {
		if s.node != nil {
			return errExists
		}
		return f.put(s.dir, s.name, n)
	})
}

func (f *memfs) mkdirAll(user, path string) error {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i := range parts {
		err := f.at(user, "/"+strings.Join(parts[:i+1], "/"), true, func(s spot) error {
			switch {
			case s.node == nil:
				s.dir.entries[s.name] = newDir()
			case s.node.kind != directory:
				return errNotDir
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *memfs) isDir(user, path string) error {
	return f.at(user, path, true, func(s spot) error {
		switch {
		case s.node == nil:
			return errNoEntry
		case s.node.kind != directory:
			return errNotDir
		}
		return nil
	})
}

func (f *memfs) remove(user, path string) error {
	return f.at(user, path, false, func(s spot) error {
		if s.node == nil || s.name == "" {
			return errNoEntry
		}
		delete(s.dir.entries, s.name)
		return nil
	})
}

func (f *memfs) rename(user, from, to string) error {
	var moved spot
	if err := f.at(user, from, false, func(s spot) error { moved = s; return nil }); err != nil {
		return err
	}
	if moved.node == nil || moved.name == "" {
		return fmt.Errorf("%s: %w", from, errNoEntry)
	}
	return f.at(user, to, false, func(s spot) error {
		dir, name := s.dir, s.name
		if s.node != nil && s.node.kind == directory {
			dir, name = s.node, moved.name
		}
		delete(moved.dir.entries, moved.name)
		dir.entries[name] = moved.node
		return nil
	})
}

// names lists a directory's entries in order.
func (n *node) names() []string { return slices.Sorted(maps.Keys(n.entries)) }
