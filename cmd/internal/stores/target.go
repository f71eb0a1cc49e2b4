// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tidemill/tidemill/bundle/s3store"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/manifest"
)

// target is how a --store flag would name what a run file says under storage.artifacts.
func target(t *manifest.StorageTarget) string {
	if t.Type != "s3" {
		return t.Path
	}
	return s3store.Options{Bucket: t.Bucket, Prefix: strings.Trim(t.Prefix, "/"), Endpoint: t.Endpoint, Region: t.Region}.URL()
}

// Named is the store that a run names under storage.artifacts, "" where it names none.
func Named(run *manifest.Run) string {
	if run.Storage.Artifacts == nil {
		return ""
	}
	return target(run.Storage.Artifacts)
}

// ForRuns returns the store of run files: the one that a flag names, which is where it was
// given, else that of their storage.artifacts, which must be the same one for all. Flag and
// run files that name different stores are refused.
func ForRuns(flag string, given bool, files []app.RunFile) (string, error) {
	where, from := flag, ""
	if given = given && flag != ""; given {
		from = "--store"
	}
	for _, file := range files {
		for _, run := range file.Runs {
			if run.Storage.Artifacts == nil {
				continue
			}
			this := target(run.Storage.Artifacts)
			if from != "" && !same(where, this) {
				return "", app.Usage(app.Hint(fmt.Errorf("%s: storage.artifacts names the store %s, %s names another", file.Path, this, from),
					"leave one out; run files with stores of their own are submitted one at a time"))
			}
			if from == "" {
				where, from = this, file.Path
			}
		}
	}
	// A file without one would go where another file says.
	if from != "" && !given {
		if file := without(files); file != "" {
			return "", app.Usage(app.Hint(fmt.Errorf("%s names no store, %s names %s", file, from, where), "name one for all with --store"))
		}
	}
	return where, nil
}

func without(files []app.RunFile) string {
	for _, file := range files {
		for _, run := range file.Runs {
			if run.Storage.Artifacts == nil {
				return file.Path
			}
		}
	}
	return ""
}

// OnlyHere refuses run files whose storage.artifacts is another place than the data
// directory of a command that has no other store.
func OnlyHere(data, command string, files []app.RunFile) error {
	for _, file := range files {
		for _, run := range file.Runs {
			if t := run.Storage.Artifacts; t != nil && !same(data, target(t)) {
				return app.Usage(app.Hint(fmt.Errorf("%s: storage.artifacts names the store %s, but %s keeps results in its data directory", file.Path, target(t), command),
					"leave it out, or use tidemill submit and tidemill worker"))
			}
		}
	}
	return nil
}

// same says whether two names are of one store, as far as names tell.
func same(a, b string) bool {
	if isBucket(a) && isBucket(b) {
		x, errX := s3store.Parse(a)
		y, errY := s3store.Parse(b)
		return errX == nil && errY == nil && x.Bucket == y.Bucket && x.Prefix == y.Prefix && agree(x.Endpoint, y.Endpoint) && agree(x.Region, y.Region)
	}
	x, okX := Directory(a)
	y, okY := Directory(b)
	if !okX || !okY {
		return false
	}
	absX, errX := filepath.Abs(x)
	absY, errY := filepath.Abs(y)
	return errX == nil && errY == nil && absX == absY
}

// agree: what one doesn't say, the environment says for both.
func agree(a, b string) bool { return a == "" || b == "" || a == b }
