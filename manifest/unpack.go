// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// DigestError: an archive is not the one that was asked for.
type DigestError struct{ Want, Got string }

func (e *DigestError) Error() string {
	return fmt.Sprintf("the archive has sha256 %s, want %s", e.Got, e.Want)
}

// Unpack reads an archive that [Archive] wrote into dir, which must not exist, and
// verifies its digest: a [*DigestError] when it is another one. dir appears whole or
// not at all. If somebody else made dir meanwhile, the error wraps [fs.ErrExist].
//
// An archive is not trusted: entries outside dir, repeated ones, symlinks that lead out,
// special files and more than the default limits of [ArchiveOptions] are refused.
func Unpack(ctx context.Context, r io.Reader, sha256hex, dir string) error {
	if err := unpack(ctx, r, sha256hex, dir); err != nil {
		return fmt.Errorf("unpack %s: %w", dir, err)
	}
	return nil
}

func unpack(ctx context.Context, r io.Reader, want, dir string) (err error) {
	if _, err := os.Lstat(dir); err == nil {
		return fs.ErrExist
	}
	parent, base := filepath.Split(filepath.Clean(dir))
	if parent == "" {
		parent = "."
	}
	temp, err := os.MkdirTemp(parent, "."+base+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	got, err := extract(ctx, r, temp, ArchiveOptions{}.withDefaults())
	if err != nil {
		return err
	}
	if got != want {
		return &DigestError{Want: want, Got: got}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	// Renaming over an empty directory succeeds on Unix; that one was nobody's result.
	if err := os.Rename(temp, dir); err != nil {
		if _, there := os.Lstat(dir); there == nil {
			return fmt.Errorf("%w: %w", fs.ErrExist, err)
		}
		return err
	}
	return nil
}

// extract writes the archive below dir and returns the digest of its tar.
func extract(ctx context.Context, r io.Reader, dir string, o ArchiveOptions) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // nothing is buffered in it
	z, err := zstd.NewReader(contextReader{ctx, r}, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(32<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		return "", err
	}
	defer z.Close()
	// Headers take half a KiB or, with long names, a few; their padding is counted in.
	most := o.MaxBytes + int64(o.MaxEntries)*4096 + 1<<20
	sum := sha256.New()
	stream := io.TeeReader(&limitedReader{r: z, left: most, most: o.MaxBytes}, sum)
	x := extractor{root: root, options: o, seen: map[string]bool{}}
	if err := x.all(tar.NewReader(stream)); err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, stream); err != nil { // what is behind the last entry counts too
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

type extractor struct {
	root    *os.Root
	options ArchiveOptions
	seen    map[string]bool
	bytes   int64
	// links are made at the end, so that no entry can be written through one.
	links [][2]string
}

func (x *extractor) all(t *tar.Reader) error {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := x.one(h, t); err != nil {
			return fmt.Errorf("entry %s: %w", quote(h.Name), err)
		}
	}
	for _, l := range x.links {
		if err := x.root.Symlink(l[1], l[0]); err != nil {
			return fmt.Errorf("entry %s: %w", quote(l[0]), err)
		}
	}
	return nil
}

func (x *extractor) one(h *tar.Header, content io.Reader) error {
	name := strings.TrimSuffix(h.Name, "/")
	if name == "" || path.Clean(name) != name || !filepath.IsLocal(name) || name == "." || !utf8.ValidString(name) {
		return errors.New("is not a plain relative path")
	}
	if x.seen[name] {
		return errors.New("is in the archive twice")
	}
	x.seen[name] = true
	x.bytes += h.Size
	if err := checkSize(x.options, len(x.seen), x.bytes); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := x.root.Mkdir(name, 0o755); err != nil {
			return err
		}
		return x.root.Chmod(name, 0o755) // whatever the umask is
	case tar.TypeReg:
		return x.file(name, h, content)
	case tar.TypeSymlink:
		x.links = append(x.links, [2]string{name, h.Linkname})
		return checkLink(name, h.Linkname)
	}
	return fmt.Errorf("is of type %q; only files, directories and symlinks are unpacked", h.Typeflag)
}

func (x *extractor) file(name string, h *tar.Header, content io.Reader) error {
	mode := fs.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// limitedReader fails, where io.LimitReader would pretend an end.
type limitedReader struct {
	r          io.Reader
	left, most int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%w of %d bytes", ErrTooLarge, l.most)
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
