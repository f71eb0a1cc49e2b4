// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
)

func TestStore(t *testing.T) {
	bundletest.Run(t, bundletest.Harness{
		Open:     func(*testing.T) bundle.Store { return memstore.New() },
		InMemory: true,
	})
}
