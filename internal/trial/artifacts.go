// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/runtime"
)

// artifactList is artifacts.json: what was kept, what was left out and why.
type artifactList struct {
	SchemaVersion int               `json:"schema_version"`
	Kept          []artifact        `json:"kept"`
	Skipped       []runtime.Skipped `json:"skipped"` // the first 1,000
	SkippedTotal  int               `json:"skipped_total"`
}

type artifact struct {
	Path   string `json:"path"`   // in the bundle
	Source string `json:"source"` // place and path in it; absolute where it was in none
	Bytes  int64  `json:"bytes"`  // before secrets were taken out
	// Executable: it could be run.
	Executable bool `json:"executable,omitempty"`
}

func (a *attempt) source(p runtime.Place, name string) string {
	switch {
	case p == runtime.Root && name == ".":
		return "/"
	case p == runtime.Root:
		return a.redact.String("/" + name)
	case name == ".":
		return string(p)
	}
	return a.redact.String(string(p) + "/" + name)
}

// skip notes what was left out.
func (a *attempt) skip(p runtime.Place, name string, size int64, reason string) {
	a.artifacts.SkippedTotal++
	if len(a.artifacts.Skipped) < defaultArtifacts {
		s := runtime.Skipped{Path: a.source(p, name), Bytes: size, Reason: a.text(reason)}
		a.artifacts.Skipped = append(a.artifacts.Skipped, s)
	}
}

var (
	// errUnfit: what is there is no file that can be read.
	errUnfit = errors.New("want a regular file")
	// errTaken: a program chose a name that the bundle can't hold.
	errTaken   = errors.New("the bundle can't hold that name")
	errOurDisk = errors.New("can't write the bundle")
)

// readFile reads one small file out of the sandbox. Symlinks are not followed.
func (a *attempt) readFile(ctx context.Context, p runtime.Place, name string, limit int64) ([]byte, error) {
	c, err := a.box.CopyOut(ctx, p, name, runtime.CopyLimits{FileBytes: limit, Entries: 1})
	if odd, ok := errors.AsType[*runtime.PathError](err); ok {
		return nil, fmt.Errorf("%s: %w; %w", name, errUnfit, odd)
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	tr := tar.NewReader(c)
	hdr, err := tr.Next()
	switch {
	case errors.Is(err, io.EOF):
		if list, _ := c.Skipped(); len(list) > 0 {
			return nil, fmt.Errorf("%s: %w; it is left out: %s", name, errUnfit, list[0].Reason)
		}
		return nil, fmt.Errorf("%s in %s: %w", name, p, runtime.ErrNotExist)
	case err != nil:
		return nil, err
	case hdr.Typeflag == tar.TypeSymlink:
		return nil, fmt.Errorf("%s: %w, not a symlink", name, errUnfit)
	case hdr.Typeflag != tar.TypeReg:
		return nil, fmt.Errorf("%s: %w, not a directory", name, errUnfit)
	case hdr.Size > limit:
		return nil, fmt.Errorf("%s: %w of at most %d bytes", name, errUnfit, limit)
	}
	data, err := io.ReadAll(tr)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, c)
	return data, err
}

// writeFile streams a file into the bundle, redacted, and returns how much of it came.
func (a *attempt) writeFile(name string, r io.Reader) (int64, error) {
	f, err := a.Files.Create(name)
	switch {
	case errors.Is(err, bundle.ErrExists), errors.Is(err, bundle.ErrInvalidKey),
		// A disk that tells no upper from lower case finds more names to be the same.
		errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return 0, fmt.Errorf("%w: %w", errTaken, err)
	case err != nil:
		return 0, fmt.Errorf("%w: %w", errOurDisk, err)
	}
	red := a.redact.Writer(diskWriter{f})
	n, err := io.Copy(red, r)
	if cerr := red.Close(); err == nil {
		err = cerr
	}
	if cerr := f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("%w: %w", errOurDisk, cerr)
	}
	return n, err
}

// diskWriter tells errors of our disk from those of the sandbox's stream.
type diskWriter struct{ w io.Writer }

func (d diskWriter) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", errOurDisk, err)
	}
	return n, err
}
