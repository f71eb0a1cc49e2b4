// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Where an archive has a dataset that can't stay where it is. The name is always the
// same, so that the digest doesn't depend on where the file was.
const (
	datasetDir  = ".dataset"
	datasetFile = datasetDir + "/rows.jsonl"
)

// archive puts a dataset that lies outside the pack or is compressed in uncompressed, as
// .dataset/rows.jsonl, and pack.yaml says so; variables in pack.yaml have their values.
// So a row is one read at its offset.
func (p *datasetPack) archive(ctx context.Context, w io.Writer) (string, error) {
	o := ArchiveOptions{}.withDefaults()
	move, err := p.movesDataset()
	if err != nil {
		return "", err
	}
	var extra []entry
	if move {
		if extra, err = p.movedDataset(ctx); err != nil {
			return "", err
		}
	}
	if move || p.expanded {
		e, err := p.rewritten(move)
		if err != nil {
			return "", err
		}
		extra = append(extra, e)
	}
	entries, err := scanTree(ctx, p.root, o, func(name string) bool {
		return name == packFileName && len(extra) > 0 || move && name == p.data.inside
	})
	if err != nil {
		return "", err
	}
	entries = append(entries, extra...)
	sortEntries(entries)
	var total int64
	for _, e := range entries {
		total += e.size
	}
	if err := checkSize(o, len(entries), total); err != nil {
		return "", err
	}
	return writeArchive(ctx, p.root, entries, w)
}

// movesDataset says whether the archive has the dataset in another form. That is so as
// well when links lead to it: where they point to need not be in the pack.
func (p *datasetPack) movesDataset() (bool, error) {
	if p.data.gzip || p.data.inside == "" {
		return true, nil
	}
	dir, err := filepath.EvalSymlinks(p.root)
	if err != nil {
		return false, err
	}
	real, err := filepath.EvalSymlinks(p.data.path)
	return real != filepath.Join(dir, filepath.FromSlash(p.data.inside)), err
}

func (p *datasetPack) movedDataset(ctx context.Context) ([]entry, error) {
	if _, err := os.Lstat(filepath.Join(p.root, datasetDir)); err == nil {
		return nil, Problem{
			File: filepath.Join(p.root, datasetDir), Text: "the name is ours, for the dataset in the archive",
			Fix: "choose another name",
		}
	}
	size, err := p.data.size(ctx)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", p.data.shown, err)
	}
	return []entry{
		{name: datasetDir, mode: fs.ModeDir | 0o755},
		{name: datasetFile, mode: 0o644, size: size, open: p.data.open},
	}, nil
}

// rewritten is pack.yaml as the archive has it.
func (p *datasetPack) rewritten(move bool) (entry, error) {
	spec := p.spec
	switch {
	case move:
		spec.Dataset.Path = datasetFile
	case p.data.inside != "":
		spec.Dataset.Path = path.Clean(p.data.inside)
	}
	data, err := marshalPack(spec)
	if err != nil {
		return entry{}, fmt.Errorf("%s: %w", packFileName, err)
	}
	return entry{
		name: packFileName, mode: 0o644, size: int64(len(data)),
		open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}, nil
}
