// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/bundle"
)

// entriesAtOnce is how many entries of a directory are held in memory.
const entriesAtOnce = 256

// List implements [bundle.Store]. It walks the directories that the prefix leads to,
// and holds a part of one per level.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[bundle.Info, error] {
	return func(yield func(bundle.Info, error) bool) {
		if err := bundle.CheckPrefix(prefix); err != nil {
			yield(bundle.Info{}, err)
			return
		}
		w := walk{ctx: ctx, prefix: prefix, yield: yield}
		// What is before the last / is known to be directories.
		key := prefix[:strings.LastIndexByte(prefix, '/')+1]
		err := w.dir(filepath.Join(s.root, bundle.LocalPath(strings.TrimSuffix(key, "/"))), key)
		if err != nil && !errors.Is(err, errStopped) {
			yield(bundle.Info{}, fmt.Errorf("list %q: %w", prefix, condition(err)))
		}
	}
}

// errStopped ends a walk that its caller has had enough of.
var errStopped = errors.New("stopped")

type walk struct {
	ctx    context.Context
	prefix string
	yield  func(bundle.Info, error) bool
}

// dir walks a directory; key is what the keys in it begin with.
func (w walk) dir(path, key string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return eachEntry(w.ctx, path, func(e fs.DirEntry) error { return w.entry(path, key, e) })
}

// eachEntry visits what is in a directory, until an error. One that is gone, or is a
// file, has nothing in it.
func eachEntry(ctx context.Context, path string, visit func(fs.DirEntry) error) error {
	f, err := os.Open(path)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := f.ReadDir(entriesAtOnce)
		for _, e := range entries {
			if err := visit(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || absent(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w walk) entry(dir, key string, e fs.DirEntry) error {
	name := e.Name()
	if name[0] == '.' {
		return nil // ours, or nobody's
	}
	path := filepath.Join(dir, name)
	if !e.IsDir() {
		return w.file(path, key+name, e)
	}
	sub := key + name + "/"
	if cut, ok := beginsLong(name); ok {
		sub = key + cut
	}
	if !strings.HasPrefix(sub, w.prefix) && !strings.HasPrefix(w.prefix, sub) {
		return nil
	}
	return w.dir(path, sub)
}

func (w walk) file(path, key string, e fs.DirEntry) error {
	if !strings.HasPrefix(key, w.prefix) || !e.Type().IsRegular() || bundle.CheckKey(key) != nil {
		return nil
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	info, err := e.Info()
	if absent(err) {
		return nil // deleted since
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !w.yield(describe(key, info), nil) {
		return errStopped
	}
	return nil
}
