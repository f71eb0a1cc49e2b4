// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// trial is the id of the trial in most tests.
const trial = "00112233445566778899aabbccddeeff"
