// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/tidemill/tidemill/runtime"
)

// copyTree copies a directory of this machine into a place; "" is none.
func (a *attempt) copyTree(ctx context.Context, dir string, p runtime.Place, opts runtime.CopyOptions) error {
	if dir == "" {
		return nil
	}
	_, err := a.copyStream(ctx, p, opts, func(w io.Writer) error { return writeTree(w, dir) })
	return err
}

// errCopyEnded is what a writer gets whose reader wanted no more.
var errCopyEnded = errors.New("the copy has ended")

// copyStream copies into a place what write writes as a tar stream. wrote is the error of
// write, err that of the copy.
func (a *attempt) copyStream(ctx context.Context, p runtime.Place, opts runtime.CopyOptions, write func(io.Writer) error) (wrote, err error) {
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		wrote = write(pw)
		pw.CloseWithError(wrote)
	}()
	err = a.box.CopyIn(ctx, p, pr, opts)
	pr.CloseWithError(errCopyEnded)
	<-done
	return wrote, err
}

// copyFiles copies named contents into a place.
func (a *attempt) copyFiles(ctx context.Context, p runtime.Place, opts runtime.CopyOptions, files map[string][]byte) error {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		body := files[name]
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(body))}); err != nil {
			return err
		}
		if _, err := tw.Write(body); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return a.box.CopyIn(ctx, p, &buf, opts)
}

// writeTree writes a directory as a tar stream: files, directories and symlinks.
func writeTree(w io.Writer, dir string) error {
	tw := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		return writeEntry(tw, dir, p, d)
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

func writeEntry(tw *tar.Writer, dir, p string, d fs.DirEntry) error {
	rel, err := filepath.Rel(dir, p)
	if err != nil {
		return err
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(p); err != nil {
			return err
		}
	}
	hdr, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	hdr.Name = filepath.ToSlash(rel)
	if d.IsDir() {
		hdr.Name = path.Clean(hdr.Name) + "/"
	}
	hdr.Uid, hdr.Gid, hdr.Uname, hdr.Gname = 0, 0, "", ""
	if err := tw.WriteHeader(hdr); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(tw, f)
	return err
}
