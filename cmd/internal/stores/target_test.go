// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/manifest"
)

// files are run files with these stores.
func files(targets ...*manifest.StorageTarget) []app.RunFile {
	var out []app.RunFile
	for i, t := range targets {
		run := &manifest.Run{}
		run.Storage.Artifacts = t
		out = append(out, app.RunFile{Path: string(rune('a'+i)) + ".yaml", Runs: []*manifest.Run{run}})
	}
	return out
}

func TestForRuns(t *testing.T) {
	dir := t.TempDir()
	local := &manifest.StorageTarget{Type: "local", Path: dir}
	bucket := &manifest.StorageTarget{Type: "s3", Bucket: "evals", Prefix: "nightly", Region: "eu-1"}
	far := &manifest.StorageTarget{Type: "s3", Bucket: "evals", Prefix: "nightly", Endpoint: "https://s3.example.com", Region: "eu-1"}
	for name, c := range map[string]struct {
		flag  string
		given bool
		files []app.RunFile
		want  string
		err   string
	}{
		"nobody says":               {flag: "results", files: files(nil), want: "results"},
		"the flag says":             {flag: "s3://evals", given: true, files: files(nil, nil), want: "s3://evals"},
		"a file says":               {flag: "results", files: files(bucket), want: "s3://evals/nightly?region=eu-1"},
		"a file says a directory":   {flag: "results", files: files(local), want: dir},
		"an endpoint":               {flag: "results", files: files(far), want: "s3://evals/nightly?endpoint=https://s3.example.com&region=eu-1"},
		"both say the same":         {flag: "s3://evals/nightly/", given: true, files: files(bucket), want: "s3://evals/nightly/"},
		"both say one directory":    {flag: "file://" + dir, given: true, files: files(local), want: "file://" + dir},
		"two files say the same":    {flag: "results", files: files(bucket, bucket), want: "s3://evals/nightly?region=eu-1"},
		"flag and file differ":      {flag: "s3://evals/other", given: true, files: files(bucket), err: "a.yaml: storage.artifacts names the store s3://evals/nightly?region=eu-1, --store names another"},
		"a directory and a bucket":  {flag: "results", given: true, files: files(bucket), err: "--store names another"},
		"two files differ":          {flag: "results", files: files(bucket, local), err: "b.yaml: storage.artifacts names the store " + dir + ", a.yaml names another"},
		"only one file says":        {flag: "results", files: files(nil, bucket), err: "a.yaml names no store, b.yaml names s3://evals/nightly"},
		"only the second is silent": {flag: "results", files: files(bucket, nil), err: "b.yaml names no store, a.yaml names s3://evals/nightly"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ForRuns(c.flag, c.given, c.files)
			if c.err != "" {
				usage(t, err, c.err)
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestOnlyHere(t *testing.T) {
	dir := t.TempDir()
	if err := OnlyHere(dir, "tidemill run", files(nil, &manifest.StorageTarget{Type: "local", Path: dir})); err != nil {
		t.Error(err)
	}
	err := OnlyHere(dir, "tidemill run", files(&manifest.StorageTarget{Type: "s3", Bucket: "evals"}))
	usage(t, err, "a.yaml: storage.artifacts names the store s3://evals, but tidemill run keeps results in its data directory")
	if err := OnlyHere(dir, "tidemill run", files(&manifest.StorageTarget{Type: "local", Path: dir + "/x"})); err == nil || !strings.Contains(err.Error(), dir+"/x") {
		t.Errorf("error %v", err)
	}
}
