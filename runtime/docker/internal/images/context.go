// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
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
	"syscall"
	"time"
)

// buildContext is a directory that is sent to the engine.
type buildContext struct {
	dir        string
	dockerfile string // relative to dir
	bytes      int64  // limits
	entries    int
}

// openContext checks what a build needs.
func (s *Store) openContext(dir, dockerfile string) (*buildContext, error) {
	if dockerfile == "" {
		dockerfile = "Dockerfile"
	}
	if !filepath.IsLocal(dockerfile) {
		return nil, permanently("the Dockerfile %q is outside of the build context: want a path relative to it", dockerfile)
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, permanently("there is no such directory")
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, permanently("the build context is no directory")
	}
	bc := &buildContext{
		dir: dir, dockerfile: filepath.Clean(dockerfile),
		bytes: s.cfg.ContextBytes, entries: s.cfg.ContextEntries,
	}
	// A Dockerfile is small; more is a mistake that should not end up in memory.
	if info, err := os.Stat(filepath.Join(dir, bc.dockerfile)); errors.Is(err, fs.ErrNotExist) {
		return nil, permanently("there is no %s in the build context", bc.dockerfile)
	} else if err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return nil, permanently("%s is no file of at most 1 MiB", bc.dockerfile)
	}
	return bc, nil
}

// permanentError is one that stays until somebody changes the task.
type permanentError struct{ error }

func permanently(format string, args ...any) error {
	return permanentError{fmt.Errorf(format, args...)}
}

// newDigest starts the digest of a build's input: the Dockerfile's name, then the
// context as it is sent. The number changes when the stream's form does.
func (bc *buildContext) newDigest() hash.Hash {
	h := sha256.New()
	fmt.Fprintf(h, "tidemill build 1\n%q\n", filepath.ToSlash(bc.dockerfile))
	return h
}

// digest reads the context and returns what identifies the build's input, in hex.
func (bc *buildContext) digest(ctx context.Context) (string, error) {
	h := bc.newDigest()
	if err := bc.write(ctx, h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sentTime is when all files of a context were changed last, as the engine sees it. Zip
// archives, which Python makes of wheels, know no time before 1980.
var sentTime = time.Unix(1_000_000_000, 0)

// write writes the context as a tar stream that depends on names, kinds, modes and
// contents only.
func (bc *buildContext) write(ctx context.Context, w io.Writer) error {
	ignored, err := bc.ignore()
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	left, entries := bc.bytes, 0
	err = filepath.WalkDir(bc.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		rel, err := filepath.Rel(bc.dir, path)
		if err != nil || rel == "." {
			return err
		}
		out, err := ignored.match(rel, d.IsDir())
		if err != nil {
			return err
		}
		if out {
			if d.IsDir() && ignored.whole() {
				return fs.SkipDir
			}
			return nil
		}
		if entries++; entries > bc.entries {
			return permanently("the build context has more than %d entries, at %s: leave some out with .dockerignore", bc.entries, rel)
		}
		return bc.entry(tw, path, filepath.ToSlash(rel), d, &left)
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

// entry writes one file, directory or symlink; nothing else is sent.
func (bc *buildContext) entry(tw *tar.Writer, path, name string, d fs.DirEntry, left *int64) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	head := &tar.Header{Name: name, Mode: unixMode(info.Mode()), ModTime: sentTime}
	switch {
	case info.IsDir():
		head.Typeflag, head.Name = tar.TypeDir, name+"/"
	case info.Mode()&fs.ModeSymlink != 0:
		head.Typeflag, head.Mode = tar.TypeSymlink, 0o777
		if head.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		return bc.file(tw, path, head, left)
	default:
		return nil
	}
	return tw.WriteHeader(head)
}

// file writes a regular file. What took its place since it was looked at is not
// followed and not waited for.
func (bc *buildContext) file(tw *tar.Writer, path string, head *tar.Header, left *int64) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s changed while the build context was read", head.Name)
	}
	head.Typeflag, head.Size, head.Mode = tar.TypeReg, info.Size(), unixMode(info.Mode())
	if *left -= head.Size; *left < 0 {
		return permanently("the build context is larger than %d bytes, at %s (%d bytes): leave some out with .dockerignore",
			bc.bytes, head.Name, head.Size)
	}
	if err := tw.WriteHeader(head); err != nil {
		return err
	}
	if n, err := io.CopyN(tw, f, head.Size); errors.Is(err, io.EOF) {
		return fmt.Errorf("%s changed while the build context was read: it had %d bytes, then %d", head.Name, head.Size, n)
	} else if err != nil {
		return err
	}
	return nil
}

// unixMode is a mode as tar has it.
func unixMode(m fs.FileMode) int64 {
	mode := int64(m.Perm())
	if m&fs.ModeSetuid != 0 {
		mode |= 0o4000
	}
	if m&fs.ModeSetgid != 0 {
		mode |= 0o2000
	}
	if m&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}
