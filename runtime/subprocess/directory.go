// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// directory is an open directory. A sandbox opens and closes many, and an [os.File] asks
// the kernel for more than these need: whether it can be watched by the poller. It is used
// by one goroutine at a time, and closed by whoever opened it.
type directory struct {
	fd      int
	parent  *directory // by which errors call it, with its name; it may be closed
	name    string
	listing listing // of names; see sys_*.go
	listed  bool
}

// openDir opens a directory by its path.
func openDir(path string) (*directory, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return &directory{fd: fd, name: path}, nil
	}
}

// path is what errors call it.
func (d *directory) path() string {
	if d.parent == nil {
		return d.name
	}
	return d.parent.join(d.name)
}

// join is what errors call an entry of it.
func (d *directory) join(name string) string { return filepath.Join(d.path(), name) }

// Close closes it. After that it stands for no directory.
func (d *directory) Close() error {
	if d == nil || d.fd < 0 {
		return fs.ErrClosed
	}
	fd := d.fd
	d.fd = -1
	return d.listing.close(fd)
}

// rewind lets names begin anew.
func (d *directory) rewind() error {
	if !d.listed {
		return nil
	}
	d.listed = false
	if err := d.listing.rewind(d.fd); err != nil {
		return &fs.PathError{Op: "rewind", Path: d.path(), Err: err}
	}
	return nil
}

// names reads on in the listing until it has at least as many names as asked for, or has
// seen the end; more says that it has not. Names of one call are in no order.
func (d *directory) names(atLeast int) (names []string, more bool, err error) {
	d.listed = true
	names, more, err = d.listing.names(d.fd, atLeast)
	if err != nil {
		err = &fs.PathError{Op: "readdir", Path: d.path(), Err: err}
	}
	return names, more, err
}

// allNames reads the whole listing.
func (d *directory) allNames() ([]string, error) {
	names, _, err := d.names(math.MaxInt)
	return names, err
}

// isEmpty tells whether there is nothing in it.
func (d *directory) isEmpty() (bool, error) {
	if err := d.rewind(); err != nil {
		return false, err
	}
	names, _, err := d.names(1)
	return len(names) == 0 && err == nil, err
}
