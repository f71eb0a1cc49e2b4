// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// ErrTooLarge: an archive passes its limits.
var ErrTooLarge = errors.New("archive is larger than the limit")

// ArchiveOptions bound an archive. A zero takes the default, which is also what
// [Unpack] accepts.
type ArchiveOptions struct {
	// MaxBytes bounds all files together. Defaults to 16 GiB.
	MaxBytes int64
	// MaxEntries bounds files, directories and links. Defaults to 200,000.
	MaxEntries int
}

const (
	defaultMaxBytes   = 16 << 30
	defaultMaxEntries = 200_000
)

func (o ArchiveOptions) withDefaults() ArchiveOptions {
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	o.MaxEntries = cmp.Or(o.MaxEntries, defaultMaxEntries)
	return o
}

// Archive writes a directory as a zstd-compressed tar and returns the sha256 of the
// tar, uncompressed, in hex. w may be nil, for the digest alone.
//
// The digest depends on names, contents, executable bits and links, nothing else: not
// on times, owners, the umask, the order of the file system or the compressor. .git is
// left out. A symlink must stay inside the directory; that and anything but files,
// directories and symlinks is refused by name.
func Archive(ctx context.Context, dir string, w io.Writer, o ArchiveOptions) (string, error) {
	// The directory itself may be named by a link; inside it none is followed.
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("archive %s: %w", dir, err)
	}
	entries, err := scanTree(ctx, real, o.withDefaults(), nil)
	if err != nil {
		return "", fmt.Errorf("archive %s: %w", dir, err)
	}
	sum, err := writeArchive(ctx, real, entries, w)
	if err != nil {
		return "", fmt.Errorf("archive %s: %w", dir, err)
	}
	return sum, nil
}

// writeArchive writes the entries in their order; w may be nil.
func writeArchive(ctx context.Context, dir string, entries []entry, w io.Writer) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // opened for reading
	sum := sha256.New()
	out := io.Writer(sum)
	var z *zstd.Encoder
	if w != nil {
		if z, err = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)); err != nil {
			return "", err
		}
		defer z.Close() //nolint:errcheck // closed below; this frees it after an error
		out = io.MultiWriter(sum, z)
	}
	t := tar.NewWriter(out)
	for _, e := range entries {
		if err := writeEntry(ctx, root, t, e); err != nil {
			return "", fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if err := t.Close(); err != nil {
		return "", err
	}
	if z != nil {
		if err := z.Close(); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func writeEntry(ctx context.Context, root *os.Root, t *tar.Writer, e entry) error {
	h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm())}
	switch {
	case e.mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
		return t.WriteHeader(h)
	case e.mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		return t.WriteHeader(h)
	}
	h.Typeflag, h.Size = tar.TypeReg, e.size
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	open := e.open
	if open == nil {
		open = func() (io.ReadCloser, error) { return openRegular(root, e.name) }
	}
	f, err := open()
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	n, err := io.Copy(t, io.LimitReader(contextReader{ctx, f}, e.size+1))
	if err == nil && n < e.size || errors.Is(err, tar.ErrWriteTooLong) {
		return errors.New("changed while it was archived")
	}
	return err
}

func openRegular(root *os.Root, name string) (io.ReadCloser, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, cmp.Or(err, errors.New("changed while it was archived"))
	}
	return f, nil
}

// contextReader ends a long copy when its context does.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
