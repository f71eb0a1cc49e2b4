// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// dataset is the file with the rows of a pack.
type dataset struct {
	path  string // absolute
	shown string // for messages
	// inside is the path relative to the pack, empty when the file is elsewhere.
	inside string
	gzip   bool
}

// openDataset finds the dataset and whether it is compressed, which its content says
// and not its name.
func (p *datasetPack) openDataset(d *decoder) {
	const entry = "dataset.path"
	written := p.spec.Dataset.Path
	if !d.given(entry) {
		return
	}
	if written == "" {
		d.problem(entry, "is empty", "name a JSONL file, plain or gzip")
		return
	}
	p.data.path = anchor(p.root, written)
	p.data.shown = written
	if !filepath.IsAbs(written) {
		p.data.shown = filepath.Join(filepath.Dir(p.file), written)
	}
	if rel, err := filepath.Rel(p.root, p.data.path); err == nil && filepath.IsLocal(rel) {
		p.data.inside = filepath.ToSlash(rel)
		if p.data.inside == packFileName {
			d.problem(entry, "is the pack file itself", "name a JSONL file")
			return
		}
	}
	f, err := p.data.openRaw()
	if err != nil {
		text := err.Error()
		if errors.Is(err, os.ErrNotExist) {
			text = "no such file: " + p.data.path
		}
		d.problem(entry, text, "name a JSONL file, plain or gzip, relative to the pack")
		return
	}
	defer f.Close() //nolint:errcheck // opened for reading
	head := make([]byte, 2)
	n, _ := io.ReadFull(f, head)
	p.data.gzip = n == 2 && head[0] == 0x1f && head[1] == 0x8b
}

func (d dataset) openRaw() (*os.File, error) {
	info, err := os.Stat(d.path) // before opening: a named pipe would block
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("is not a regular file: %s", d.path)
	}
	return os.Open(d.path)
}

// open reads the rows, uncompressed.
func (d dataset) open() (io.ReadCloser, error) {
	f, err := d.openRaw()
	if err != nil {
		return nil, err
	}
	if !d.gzip {
		return f, nil
	}
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 64<<10))
	if err != nil {
		return nil, errors.Join(gzipError(err), f.Close())
	}
	return &unzipped{z: z, f: f}, nil
}

type unzipped struct {
	z *gzip.Reader
	f *os.File
}

func (u *unzipped) Read(p []byte) (int, error) {
	n, err := u.z.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = gzipError(err)
	}
	return n, err
}

func (u *unzipped) Close() error { return errors.Join(u.z.Close(), u.f.Close()) }

// errGzip marks what is wrong with the file, as opposed to a disk that fails.
var errGzip = errors.New("broken gzip data")

func gzipError(err error) error {
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || strings.HasPrefix(err.Error(), "flate:") {
		return fmt.Errorf("%w: %w", errGzip, err)
	}
	return err
}

// size counts the uncompressed bytes.
func (d dataset) size(ctx context.Context) (int64, error) {
	if !d.gzip {
		info, err := os.Stat(d.path)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	r, err := d.open()
	if err != nil {
		return 0, err
	}
	defer r.Close() //nolint:errcheck // opened for reading
	return io.Copy(io.Discard, contextReader{ctx, r})
}

// read returns length bytes at an offset of the uncompressed rows. That is one read
// of a plain file; a compressed one, which only unpacked packs don't have, is read up
// to there.
func (d dataset) read(offset, length int64) ([]byte, error) {
	row := make([]byte, length)
	if !d.gzip {
		f, err := d.openRaw()
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // opened for reading
		_, err = io.ReadFull(io.NewSectionReader(f, offset, length), row)
		return row, err
	}
	r, err := d.open()
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // opened for reading
	if _, err := io.CopyN(io.Discard, r, offset); err != nil {
		return nil, err
	}
	_, err = io.ReadFull(r, row)
	return row, err
}
