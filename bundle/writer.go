// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Writer gathers the files of one attempt in a directory until they are sealed.
// Methods may be called from many goroutines.
type Writer struct {
	dir    string
	spares Spares // nil where there are none

	dirMu sync.Mutex
	dirs  map[string]bool // paths of those that are there: dir, and some below it

	mu     sync.Mutex
	files  map[string]IndexEntry // those that are closed
	open   map[string]bool
	sealed bool
}

// Spares are files of bundles that were removed, to write others into. Making a file can cost
// more than writing it.
type Spares interface {
	// Lay puts an empty file at a path where there is none, and reports whether it did.
	Lay(path string) bool
	// Drop takes the file at a path away.
	Drop(path string)
}

// Modes of a bundle's files and directories, less the umask: a [DirTaker] keeps them. Until
// then it is for the directory that they are in to keep others out.
const (
	fileMode = 0o666
	dirMode  = 0o777
)

// Sealed is a bundle that won't change any more.
type Sealed struct {
	Dir         string
	IndexSHA256 string
	Files       []IndexEntry // without index.json
	Bytes       int64        // of all files, index.json among them
}

// NewWriter makes the directory of a bundle. One that holds anything is refused. The files
// are spare ones where there are any; spares may be nil.
func NewWriter(dir string, spares Spares) (*Writer, error) {
	w := &Writer{dir: dir, spares: spares, dirs: map[string]bool{}, files: map[string]IndexEntry{}, open: map[string]bool{}}
	isNew, err := w.makeDir(dir)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	if isNew {
		return w, nil
	}
	switch names, err := os.ReadDir(dir); {
	case err != nil:
		return nil, fmt.Errorf("bundle: %w", err)
	case len(names) > 0:
		return nil, fmt.Errorf("bundle: %s holds %q already, want an empty directory", dir, names[0].Name())
	}
	return w, nil
}

// Create starts a file of the bundle; closing it ends it. The name is the file's real
// one, with any bytes in it, and is escaped here: see [EscapeName].
func (w *Writer) Create(name string) (io.WriteCloser, error) {
	full, path, err := escapeName(name)
	if err != nil {
		return nil, err
	}
	if err := w.reserve(path); err != nil {
		return nil, err
	}
	f, err := w.createFile(filepath.Join(w.dir, LocalPath(path)))
	if err != nil {
		w.finish(path, nil)
		return nil, fmt.Errorf("bundle: %w", err)
	}
	b := &bundleFile{w: w, f: f, sum: sha256.New(), entry: IndexEntry{Path: path}}
	if full != path {
		b.entry.Name = full
	}
	return b, nil
}

// WriteFile adds a file in one go.
func (w *Writer) WriteFile(name string, body []byte) error {
	f, err := w.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	return errors.Join(err, f.Close())
}

// WriteYAML adds a file that holds a value as YAML; see [EncodeYAML].
func (w *Writer) WriteYAML(name string, v any) error {
	body, err := EncodeYAML(v)
	if err != nil {
		return fmt.Errorf("bundle file %s: %w", name, err)
	}
	return w.WriteFile(name, body)
}

// Seal writes index.json. All files must be closed, and none can be added afterwards.
func (w *Writer) Seal(ctx context.Context) (Sealed, error) {
	if err := ctx.Err(); err != nil {
		return Sealed{}, fmt.Errorf("seal bundle: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sealed {
		return Sealed{}, fmt.Errorf("seal bundle: %s is sealed already", w.dir)
	}
	for path := range w.open {
		return Sealed{}, fmt.Errorf("seal bundle: file %s is still open", path)
	}
	ix := Index{SchemaVersion: SchemaVersion, Files: make([]IndexEntry, 0, len(w.files))}
	sealed := Sealed{Dir: w.dir}
	for _, e := range w.files {
		ix.Files = append(ix.Files, e)
		sealed.Bytes += e.Size
	}
	slices.SortFunc(ix.Files, func(a, b IndexEntry) int { return strings.Compare(a.Path, b.Path) })
	body, err := EncodeRecord(ix)
	if err != nil {
		return Sealed{}, err
	}
	f, err := w.createFile(filepath.Join(w.dir, IndexName))
	if err == nil {
		_, err = f.Write(body)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return Sealed{}, fmt.Errorf("seal bundle: %w", err)
	}
	w.sealed = true
	sealed.Files = ix.Files
	sealed.IndexSHA256 = hexSum(body)
	sealed.Bytes += int64(len(body))
	return sealed, nil
}

// Remove deletes the directory and everything in it. It can be repeated.
func (w *Writer) Remove() error {
	if _, err := os.Lstat(w.dir); errors.Is(err, fs.ErrNotExist) {
		return nil // a store has taken it
	}
	if w.spares != nil {
		w.dropFiles()
	}
	return os.RemoveAll(w.dir)
}

// dropFiles makes spares of the files. Not of one that is open: whoever has it may go on
// writing, and would do so in another bundle.
func (w *Writer) dropFiles() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path := range w.files {
		w.spares.Drop(filepath.Join(w.dir, LocalPath(path)))
	}
	if w.sealed {
		w.spares.Drop(filepath.Join(w.dir, IndexName))
	}
}

// reserve takes a path for a file that is about to be written.
func (w *Writer) reserve(path string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, done := w.files[path]
	switch {
	case w.sealed:
		return fmt.Errorf("bundle file %s: the bundle is sealed", path)
	case done || w.open[path]:
		return fmt.Errorf("bundle file %s: %w", path, ErrExists)
	case path == IndexName:
		return fmt.Errorf("bundle file %s: %w: the name is that of the index", path, ErrInvalidKey)
	}
	w.open[path] = true
	return nil
}

// finish enters a file that was written, or gives its path up.
func (w *Writer) finish(path string, entry *IndexEntry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, path)
	if entry != nil {
		w.files[path] = *entry
	}
}

func (w *Writer) createFile(path string) (*os.File, error) {
	if _, err := w.makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if w.spares != nil && w.spares.Lay(path) {
		return openFile(path, os.O_WRONLY, 0)
	}
	return openFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
}

// makeDir makes a directory, with those above it, unless it is there. It says whether it is
// certainly new: the one above mostly is there, so that is tried first.
func (w *Writer) makeDir(dir string) (isNew bool, err error) {
	w.dirMu.Lock()
	defer w.dirMu.Unlock()
	if w.dirs[dir] {
		return false, nil
	}
	if os.Mkdir(dir, dirMode) == nil {
		isNew = true
	} else if err := os.MkdirAll(dir, dirMode); err != nil {
		return false, err
	}
	w.dirs[dir] = true
	return isNew, nil
}

// bundleFile hashes what is written to it, so that sealing reads nothing again.
type bundleFile struct {
	w     *Writer
	f     *os.File
	sum   hash.Hash
	entry IndexEntry
	done  bool
}

func (b *bundleFile) Write(p []byte) (int, error) {
	n, err := b.f.Write(p)
	b.sum.Write(p[:n])
	b.entry.Size += int64(n)
	return n, err
}

// Close enters the file as it stands, even after a failed write: what was written is
// evidence too. A second Close is no error.
func (b *bundleFile) Close() error {
	if b.done {
		return nil
	}
	b.done = true
	err := b.f.Close()
	b.entry.SHA256 = hex.EncodeToString(b.sum.Sum(nil))
	b.w.finish(b.entry.Path, &b.entry)
	return err
}

func hexSum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
