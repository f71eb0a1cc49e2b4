// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"
)

// archive writes the tasks' directories, whole and under their names, and nothing else of
// the directory that they are in. A directory of tasks that is a link is written as what
// it points at.
func (p *harborPack) archive(ctx context.Context, w io.Writer) (string, error) {
	o := ArchiveOptions{}.withDefaults()
	var all []entry
	var total int64
	for _, name := range p.names {
		entries, err := p.archived(ctx, name, o)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, entries...)
		for _, e := range entries {
			total += e.size
		}
		if err := checkSize(o, len(all), total); err != nil {
			return "", err
		}
	}
	vars, err := p.variables(ctx)
	if err != nil {
		return "", err
	}
	if !vars.empty() {
		e, err := vars.entry()
		if err != nil {
			return "", err
		}
		all = append(all, e)
	}
	sortEntries(all)
	return writeArchive(ctx, p.parent, all, w)
}

// archived lists what of a task is in the archive.
func (p *harborPack) archived(ctx context.Context, name string, o ArchiveOptions) ([]entry, error) {
	if !utf8.ValidString(name) {
		return nil, errors.New("the name is not valid UTF-8")
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(p.parent, name))
	if err != nil {
		return nil, err
	}
	entries, err := scanTree(ctx, dir, o, nil)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		inside := entries[i].name
		entries[i].name = name + "/" + inside
		if entries[i].mode.IsRegular() {
			entries[i].open = func() (io.ReadCloser, error) {
				root, err := os.OpenRoot(dir)
				if err != nil {
					return nil, err
				}
				defer root.Close() //nolint:errcheck // opened for reading
				return openRegular(root, inside)
			}
		}
	}
	return append(entries, entry{name: name, mode: fs.ModeDir | 0o755}), nil
}

// variables gathers what all tasks took. A task that is wrong takes what it could be read
// of it.
func (p *harborPack) variables(ctx context.Context) (harborVariables, error) {
	all := harborVariables{Values: map[string]string{}}
	for _, name := range p.names {
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		data, err := readSmall(filepath.Join(p.parent, name, taskFileName))
		if err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		if !bytes.Contains(data, []byte("${")) {
			continue // it takes nothing
		}
		l, err := p.load(name)
		if err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		if l.env != nil {
			maps.Copy(all.Values, l.env.used.Values)
			all.Secrets = append(all.Secrets, l.env.used.Secrets...)
		}
	}
	slices.Sort(all.Secrets)
	all.Secrets = slices.Compact(all.Secrets)
	return all, nil
}

func (v harborVariables) entry() (entry, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return entry{}, err
	}
	return entry{
		name: harborVariablesFile, mode: 0o644, size: int64(len(data)),
		open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}, nil
}
