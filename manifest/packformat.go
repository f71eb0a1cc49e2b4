// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
)

// format is how the directory of a pack is to be read.
type format int

const (
	nativeFormat format = iota + 1 // it has a pack.yaml
	harborTask                     // it has a task.toml: one Harbor task
	harborTasks                    // directories in it have a task.toml: a Harbor dataset
)

// packFormat tells the format of a directory, or why it is no pack. A pack.yaml decides
// whatever stands in the directories below it, and so does a task.toml. Both beside each
// other are refused: nobody could say which one is meant.
func packFormat(dir string) (f format, text, fix string) {
	if text := notDir(dir); text != "" {
		return 0, text, "name the directory of a pack, relative to the run file"
	}
	native, task := isFile(filepath.Join(dir, packFileName)), isFile(filepath.Join(dir, taskFileName))
	switch {
	case native && task:
		return 0, "has a " + packFileName + " and a " + taskFileName, "a pack is one or the other; take one away"
	case native:
		return nativeFormat, "", ""
	case task:
		return harborTask, "", ""
	}
	names, err := harborNames(dir)
	switch {
	case err != nil:
		return 0, "can't be looked at: " + err.Error(), ""
	case len(names) > 0:
		return harborTasks, "", ""
	}
	return 0, "no " + packFileName + " in " + dir + ", and no " + taskFileName + " in it or in a directory of it",
		"a pack is a directory with a " + packFileName + ", a Harbor task, or a directory of Harbor tasks"
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// harborNames lists the directories in a directory that are Harbor tasks, sorted. Whatever
// else is there is no part of the pack.
func harborNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if isFile(filepath.Join(dir, e.Name(), taskFileName)) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
