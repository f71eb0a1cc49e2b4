// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// The functions here work on an open directory and the name of an entry in it, and
// never follow a symlink. os.Root keeps inside a tree, but goes through symlinks that
// stay inside; where a tree is read, written or removed, not even that is wanted.

// openDirAt opens a directory of a directory; see openDirFD.
func openDirAt(dir *directory, name string) (*directory, error) {
	fd, err := openDirFD(dir, name)
	if err != nil {
		return nil, err
	}
	return &directory{fd: fd, parent: dir, name: name}, nil
}

// openDirSameDevice is openDirFD for systems that can't do better.
func openDirSameDevice(dir *directory, name string) (int, error) {
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, err
	}
	var parent, child unix.Stat_t
	err = cmpErr(unix.Fstat(dir.fd, &parent), unix.Fstat(fd, &child))
	if err == nil && parent.Dev != child.Dev {
		err = unix.EXDEV
	}
	if err != nil {
		unix.Close(fd)
		return -1, &fs.PathError{Op: "open", Path: dir.join(name), Err: err}
	}
	return fd, nil
}

// openFileAt opens a regular file for reading, and says what it is. A fifo or a device that
// took its place doesn't block, and is an error. The caller closes the descriptor.
func openFileAt(dir *directory, name string) (int, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, st, err
	}
	err = unix.Fstat(fd, &st)
	if err == nil && kindOf(st) != unix.S_IFREG {
		err = errors.New("not a regular file")
	}
	if err != nil {
		unix.Close(fd)
		return -1, st, &fs.PathError{Op: "open", Path: dir.join(name), Err: err}
	}
	return fd, st, nil
}

// readFileAt reads a regular file, but no more of it than limit.
func readFileAt(dir *directory, name string, limit int64) ([]byte, error) {
	fd, _, err := openFileAt(dir, name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return io.ReadAll(io.LimitReader(descriptor(fd), limit))
}

// createAt makes a file that must not exist.
func createAt(dir *directory, name string) (int, error) {
	return openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW, 0o600)
}

// writeAndClose writes all of a file, of which it closes the descriptor.
func writeAndClose(fd int, data []byte) error {
	_, err := descriptor(fd).Write(data)
	return errors.Join(err, unix.Close(fd))
}

// descriptor reads and writes a file.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), p)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (d descriptor) Write(p []byte) (int, error) {
	for done := 0; ; {
		n, err := unix.Write(int(d), p[done:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return done, err
		case n == 0 && done < len(p):
			return done, io.ErrUnexpectedEOF
		}
		if done += n; done == len(p) {
			return done, nil
		}
	}
}

func openat(dir *directory, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir.fd, name, flags|unix.O_CLOEXEC, perm)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: dir.join(name), Err: err}
		}
		return fd, nil
	}
}

// openForced opens a directory that its owner, who is our user, made unreadable.
func openForced(dir *directory, name string) (*directory, error) {
	sub, err := openDirAt(dir, name)
	if !errors.Is(err, fs.ErrPermission) || chmodAt(dir, name, 0o700) != nil {
		return sub, err
	}
	return openDirAt(dir, name)
}

func statAt(dir *directory, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(dir.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return st, &fs.PathError{Op: "stat", Path: dir.join(name), Err: err}
		}
		return st, nil
	}
}

func kindOf(st unix.Stat_t) uint32 { return uint32(st.Mode) & unix.S_IFMT }

func readlinkAt(dir *directory, name string) (string, error) {
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(dir.fd, name, buf)
		if err != nil {
			return "", &fs.PathError{Op: "readlink", Path: dir.join(name), Err: err}
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

// touchAt sets when an entry was changed, and leaves when it was read.
func touchAt(dir *directory, name string, changed unix.Timespec) error {
	times := []unix.Timespec{{Nsec: utimeOmit}, changed}
	if err := unix.UtimesNanoAt(dir.fd, name, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "chtimes", Path: dir.join(name), Err: err}
	}
	return nil
}

// isIdentity tells whether an entry is what it was. Without a directory, the name is
// an absolute path.
func isIdentity(dir *directory, name string, want identity) (bool, error) {
	got, err := identityAt(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && got == want, err
}
