// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// ignored is what a build context leaves out. It is asked in the order of a walk:
// directories before what is in them.
type ignored struct {
	patterns *patternmatcher.PatternMatcher // nil leaves nothing out
	// keep are the files that the engine needs to build, whatever the patterns say; it
	// then keeps them out of the image itself.
	keep    map[string]bool
	parents map[string]patternmatcher.MatchInfo
}

const ignoreFile = ".dockerignore"

// ignore reads the ignore file: the one beside the Dockerfile and named after it, else
// the context's.
func (bc *buildContext) ignore() (*ignored, error) {
	ig := &ignored{
		keep:    map[string]bool{bc.dockerfile: true, ignoreFile: true},
		parents: map[string]patternmatcher.MatchInfo{},
	}
	for _, name := range []string{bc.dockerfile + ignoreFile, ignoreFile} {
		f, err := os.Open(filepath.Join(bc.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lines, err := ignorefile.ReadAll(f)
		f.Close()
		if err != nil {
			return nil, permanently("%s: %w", name, err)
		}
		if ig.patterns, err = patternmatcher.New(lines); err != nil {
			return nil, permanently("%s: %w", name, err)
		}
		break
	}
	return ig, nil
}

// match reports whether a path, relative to the context, is left out.
func (ig *ignored) match(rel string, dir bool) (bool, error) {
	if ig.patterns == nil {
		return false, nil
	}
	out, info, err := ig.patterns.MatchesUsingParentResults(rel, ig.parents[filepath.Dir(rel)])
	if err != nil {
		return false, permanently("%s: %w", ignoreFile, fmt.Errorf("%s: %w", rel, err))
	}
	if dir {
		ig.parents[rel] = info
	}
	return out && !ig.keep[rel], nil
}

// whole reports whether all that is in a directory that is left out is left out too.
func (ig *ignored) whole() bool {
	if ig.patterns.Exclusions() {
		return false
	}
	for name := range ig.keep {
		if filepath.Dir(name) != "." {
			return false
		}
	}
	return true
}
