// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

func TestMain(m *testing.M) {
	subprocess.Main()
	playProcess()
	// Makes what the package shares outside of any bubble of time.
	_, _ = bundle.DecodePlanPart(nil)
	goleak.VerifyTestMain(m)
}
