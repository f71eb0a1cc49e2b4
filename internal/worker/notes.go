// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// notes are files that say where bundles belong that there are not yet. They are written
// over for one attempt after another: an attempt pays for a write, not for a file.
type notes struct {
	dir string

	mu   sync.Mutex
	free []*note
	last int
}

// note is one of them. It belongs to one attempt at a time.
type note struct {
	file *os.File
	size int // of the longest that was in it
}

var errNoNote = errors.New("there is no note of it")

// newNotes begins with none, whatever was left in the directory.
func newNotes(dir string) (*notes, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	return &notes{dir: dir}, os.Mkdir(dir, 0o700)
}

// write notes something down.
func (n *notes) write(body []byte) (*note, error) {
	f, err := n.take()
	if err != nil {
		return nil, err
	}
	// What is in it belongs to an attempt that is over. Blanks take the rest of its place,
	// so that the file needs neither be cut off nor filled again.
	f.size = max(f.size, len(body))
	body = append(body, bytes.Repeat([]byte{' '}, f.size-len(body))...)
	if _, err := f.file.WriteAt(body, 0); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

func (n *notes) take() (*note, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := len(n.free) - 1; last >= 0 {
		f := n.free[last]
		n.free = n.free[:last]
		return f, nil
	}
	n.last++
	f, err := os.OpenFile(filepath.Join(n.dir, fmt.Sprint(n.last)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return &note{file: f}, err
}

// drop gives a note back that nobody needs. Nil is none.
func (n *notes) drop(f *note) {
	if f == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free = append(n.free, f)
}

// move puts a note where it is to stay. What it said of an attempt before would otherwise be
// what is there after a loss of power: a rename comes to disk before what was written over.
func (n *notes) move(f *note, path string) error {
	if f == nil {
		return errNoNote
	}
	return errors.Join(f.file.Sync(), os.Rename(f.file.Name(), path), f.file.Close())
}

func (f *note) remove() error { return errors.Join(f.file.Close(), os.Remove(f.file.Name())) }

// close removes those that nobody needs. The last attempt is over.
func (n *notes) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for _, f := range n.free {
		errs = append(errs, f.remove())
	}
	n.free = nil
	return errors.Join(errs...)
}
