// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// collectedDir is where files from anywhere in the sandbox go, below artifacts and in a
// task of several steps below the step's directory: a name of its own, so that they
// never meet what a program left in the artifacts directory.
const collectedDir = "collected"

// reasonMissing stands beside a source of which there is nothing. That is no failure.
const reasonMissing = "there is no such file"

// collectEntries bounds how much of a directory is looked at: a source may be as large as
// the image.
const collectEntries = 100_000

// collectElsewhere takes the files and directories that task and step name, wherever in
// the sandbox they are, at the end of each step.
func (a *attempt) collectElsewhere(ctx context.Context) error {
	for _, c := range slices.Concat(a.Task.Collect, a.step.Collect) {
		if err := a.collectSource(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) collectSource(ctx context.Context, c manifest.Collect) error {
	p, rel := a.locate(c.Source)
	if p == runtime.Root && rel == "." {
		a.skip(p, rel, 0, "it is the whole file system; name a directory below it")
		return nil
	}
	name := c.Destination
	if name == "" {
		name = path.Base(path.Join(a.box.Path(p), rel))
	}
	dest := path.Join("artifacts", a.stepDir(), collectedDir, path.Clean("/"+name))
	found, err := a.collectFrom(ctx, p, rel, &runtime.CopyLimits{Bytes: max(a.room.Bytes, 1), Entries: collectEntries}, func(name string) string {
		if rel == "." {
			return path.Join(dest, name)
		}
		return dest + strings.TrimPrefix(name, rel)
	})
	if _, ok := errors.AsType[*runtime.UnsupportedError](err); ok {
		a.skip(p, rel, 0, err.Error())
		return nil
	}
	if err == nil && !found {
		a.skip(p, rel, 0, reasonMissing)
	}
	return err
}

// locate finds the place that a source is in, and what it is called there: that place
// whose path says most of it, or the root.
func (a *attempt) locate(source string) (in runtime.Place, rel string) {
	at := source
	if !path.IsAbs(at) {
		at = path.Join(a.box.Path(runtime.Workdir), at)
	}
	at = path.Clean(at)
	in, rel = runtime.Root, strings.TrimPrefix(at, "/")
	longest := 0
	for _, p := range runtime.Places {
		dir := a.box.Path(p)
		rest, ok := strings.CutPrefix(at+"/", strings.TrimSuffix(dir, "/")+"/")
		if ok && len(dir) > longest {
			in, rel, longest = p, strings.TrimSuffix(rest, "/"), len(dir)
		}
	}
	if rel == "" {
		rel = "."
	}
	return in, rel
}
