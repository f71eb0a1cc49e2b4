// SPDX-License-Identifier: Apache-2.0

package debugcmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/manifest"
)

// A debugged agent must not see the results that its run file names.
func TestHidden(t *testing.T) {
	for name, test := range map[string]struct {
		storage *manifest.StorageTarget
		want    []string
	}{
		"none":        {nil, []string{"/own"}},
		"a directory": {&manifest.StorageTarget{Type: "local", Path: "/results"}, []string{"/own", "/results"}},
		"a bucket":    {&manifest.StorageTarget{Type: "s3", Bucket: "evals"}, []string{"/own"}},
	} {
		run := &manifest.Run{}
		run.Storage.Artifacts = test.storage
		if diff := cmp.Diff(test.want, hidden("/own", run)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
