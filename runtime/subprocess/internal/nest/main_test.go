// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain is a warden, or a worker that will be killed, where it was started as one.
func TestMain(m *testing.M) {
	Main()
	victim()
	goleak.VerifyTestMain(m)
}
