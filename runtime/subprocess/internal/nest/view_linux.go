// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// scene is a view with its mount namespace, which nests copy.
type scene struct {
	view *View
	mu   sync.Mutex
	fd   int // of the namespace; 0 before it was built
}

// get returns a descriptor of the namespace. Who comes first builds it; after a failure
// the next one tries again.
func (s *scene) get() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd > 0 {
		return s.fd, nil
	}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		goruntime.LockOSThread() // for good: the thread is in the view
		s.fd, err = buildView(*s.view)
	}()
	<-done
	return s.fd, err
}

const sealed = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV

// buildView turns this thread's mount namespace into a view. Everything that is to be
// seen inside a hidden directory is cloned before anything is hidden.
func buildView(v View) (int, error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return -1, fmt.Errorf("new mount namespace: %w", err)
	}
	// Private: what is mounted on the host later would come in writable, and what the
	// nest mounts would go out.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return -1, fmt.Errorf("make mounts private: %w", err)
	}
	var b builder
	defer b.close()
	root, err := b.clone(v.Root, unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return -1, err
	}
	shown := map[string]int{}
	for _, path := range v.Show {
		if shown[path], err = b.clone(path, sealed); err != nil {
			return -1, err
		}
	}
	dev, err := b.cloneDevices()
	if err != nil {
		return -1, err
	}
	if err := setAttr(unix.AT_FDCWD, "/", sealed, unix.AT_RECURSIVE); err != nil {
		return -1, fmt.Errorf("make everything read-only: %w", err)
	}
	// Parents come before what is inside them.
	type step struct {
		path string
		do   func(path string) error
	}
	var steps []step
	for _, path := range v.Hide {
		steps = append(steps, step{path, b.hide})
	}
	steps = append(steps, step{"/dev", func(string) error { return b.makeDev(dev) }})
	for path, fd := range shown {
		steps = append(steps, step{path, func(path string) error { return b.show(fd, path) }})
	}
	for path, target := range v.Links {
		steps = append(steps, step{path, func(path string) error { return b.link(target, path) }})
	}
	steps = append(steps, step{v.Root, func(path string) error { return b.attach(root, path) }})
	slices.SortStableFunc(steps, func(x, y step) int { return cmp.Compare(x.path, y.path) })
	for _, s := range steps {
		if err := s.do(s.path); err != nil {
			return -1, err
		}
	}
	if err := b.coverSockets(v.Root); err != nil {
		return -1, err
	}
	if err := b.seal(); err != nil {
		return -1, err
	}
	fd, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open the mount namespace: %w", err)
	}
	return fd, nil
}

// builder builds one view.
type builder struct {
	fds    []int
	hidden []string // mount points of the empty file systems
}

func (b *builder) close() { closeAll(b.fds) }

func (b *builder) clone(path string, attr uint64) (int, error) {
	fd, err := cloneTree(path)
	if err != nil {
		return -1, err
	}
	b.fds = append(b.fds, fd)
	if err := setAttr(fd, "", attr, unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err != nil {
		return -1, fmt.Errorf("protect %s: %w", path, err)
	}
	return fd, nil
}

func (b *builder) hide(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return nil // it isn't there, or not any more
	}
	if err := emptyOn(path, "size=1m"); err != nil {
		return fmt.Errorf("hide %s: %w", path, err)
	}
	b.hidden = append(b.hidden, path)
	return nil
}

// inHidden tells whether a path is in a directory that was hidden: what is shown in
// others is seen anyway.
func (b *builder) inHidden(path string) bool {
	return slices.ContainsFunc(b.hidden, func(h string) bool { return under(path, h) })
}

func (b *builder) show(fd int, path string) error {
	if !b.inHidden(path) {
		return nil
	}
	return b.attach(fd, path)
}

func (b *builder) link(target, path string) error {
	if _, err := os.Lstat(path); err == nil || !b.inHidden(path) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// attach puts a clone at its path, which is made where it was hidden.
func (b *builder) attach(fd int, path string) error {
	if err := makePoint(fd, path); err != nil {
		return err
	}
	return attachTree(fd, path)
}

// seal makes the empty file systems read-only: they are the same ones in all nests.
func (b *builder) seal() error {
	for _, path := range b.hidden {
		if err := setAttr(unix.AT_FDCWD, path, sealed|unix.MOUNT_ATTR_NOSUID, 0); err != nil {
			return fmt.Errorf("seal %s: %w", path, err)
		}
	}
	return nil
}

// coverSockets covers the unix sockets that can still be seen: a network namespace
// doesn't keep anybody from connecting to one that has a path.
func (b *builder) coverSockets(root string) error {
	data, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil // without /proc there is nothing to go by
	}
	for _, path := range socketPaths(string(data)) {
		if under(path, root) {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		if info, err := os.Lstat(real); err != nil || info.Mode().Type() != fs.ModeSocket {
			continue
		}
		if err := cover(real); err != nil {
			return err
		}
	}
	return nil
}

// socketPaths returns the paths in the kernel's list of unix sockets.
func socketPaths(list string) []string {
	var paths []string
	for line := range strings.Lines(list) {
		// Seven columns, then the path, which may hold spaces.
		if i := strings.Index(line, " /"); i >= 0 {
			paths = append(paths, strings.TrimRight(line[i+1:], "\n"))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
