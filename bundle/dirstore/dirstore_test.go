// SPDX-License-Identifier: Apache-2.0

package dirstore_test

import (
	"path/filepath"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/dirstore"
)

func open(t testing.TB, root string) *dirstore.Store {
	t.Helper()
	s, err := dirstore.Open(root, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	roots := map[bundle.Store]string{}
	bundletest.Run(t, bundletest.Harness{
		Open: func(t *testing.T) bundle.Store {
			root := filepath.Join(t.TempDir(), "new", "store")
			s := open(t, root)
			roots[s] = root
			return s
		},
		Second: func(t *testing.T, first bundle.Store) bundle.Store { return open(t, roots[first]) },
	})
}
