// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/manifest"
)

// RunFile is a run file and the runs that it makes: more than one with a matrix.
type RunFile struct {
	Path string
	Runs []*manifest.Run
}

// LoadRuns reads run files, with problems as usage errors. Variables that none of them
// uses are such a problem.
func LoadRuns(paths []string, o manifest.LoadOptions) ([]RunFile, error) {
	var files []RunFile
	var all []*manifest.Run
	var errs []error
	for _, path := range paths {
		if err := readable(path); err != nil {
			errs = append(errs, err)
			continue
		}
		runs, err := manifest.Load(path, o)
		if lacksVariable(err) {
			err = Hint(err, "variables come from --var NAME=VALUE and from the environment")
		}
		errs = append(errs, err)
		files = append(files, RunFile{path, runs})
		all = append(all, runs...)
	}
	err := errors.Join(errs...)
	if err == nil {
		err = manifest.UnusedVars(o, all...)
	}
	return files, Usage(err)
}

// lacksVariable recognizes a problem that the person may mend on the command line.
func lacksVariable(err error) bool {
	problems, _ := errors.AsType[manifest.Problems](err)
	return slices.ContainsFunc(problems, func(p manifest.Problem) bool { return strings.Contains(p.Text, "has no value") })
}

// readable says more about a path that is no file than a loader would.
func readable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err := fmt.Errorf("%s: there is no such file", path)
		if near := runFilesIn(filepath.Dir(path)); near != "" {
			return Hint(err, "%s has %s", filepath.Dir(path), near)
		}
		return err
	case err == nil && info.IsDir():
		err := fmt.Errorf("%s: is a directory, want a run file", path)
		if near := runFilesIn(path); near != "" {
			return Hint(err, "it has %s", near)
		}
		return err
	}
	return nil // what else is wrong the loader finds
}

// runFilesIn lists a few YAML files of a directory.
func runFilesIn(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml"}, ext) {
			names = append(names, e.Name())
		}
	}
	if len(names) > 5 {
		names = append(names[:5:5], "…")
	}
	return strings.Join(names, ", ")
}

// CheckRunID refuses an explicit run id that could not be used.
func CheckRunID(id string, files []RunFile) error {
	if id == "" {
		return nil
	}
	if len(files) > 1 {
		return Usage(fmt.Errorf("--run-id names one run, and there are %d run files; give it with one of them", len(files)))
	}
	for i, c := range []byte(id) {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-') {
			return Usage(fmt.Errorf("--run-id %q: want small letters, digits and dashes, with no dash at the beginning", id))
		}
	}
	most := 63
	if n := len(files[0].Runs); n > 1 {
		most -= len(fmt.Sprintf("-%d", n))
	}
	if len(id) > most {
		return Usage(fmt.Errorf("--run-id %q: %d characters, want at most %d", id, len(id), most))
	}
	return nil
}
