// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

// runVar makes the test binary the command, a process of its own as for a person.
const runVar = "TIDEMILL_TEST_RUN"

func TestMain(m *testing.M) {
	subprocess.Main()
	if os.Getenv(runVar) != "" {
		os.Exit(app.Main(Command(&app.LogFlags{Level: "info", Format: "json"})))
	}
	goleak.VerifyTestMain(m)
}
