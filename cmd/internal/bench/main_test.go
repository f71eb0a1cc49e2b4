// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"testing"

	"github.com/tidemill/tidemill/cmd/internal/procs"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

func TestMain(m *testing.M) {
	subprocess.Main()
	procs.Widen() // as tidemill run does; the bare side has it too
	code := m.Run()
	for _, dir := range benchDirs {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// benchDirs are removed when all is measured: on ext4 whoever creates files pays for minutes
// for what was removed before.
var benchDirs []string
