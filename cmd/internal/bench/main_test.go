// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"testing"

	"github.com/tidemill/tidemill/runtime/subprocess"
)

func TestMain(m *testing.M) {
	subprocess.Main()
	os.Exit(m.Run())
}
