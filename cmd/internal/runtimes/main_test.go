// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/runtime/subprocess"
)

func TestMain(m *testing.M) {
	subprocess.Main()
	goleak.VerifyTestMain(m)
}
