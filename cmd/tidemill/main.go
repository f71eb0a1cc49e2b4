// SPDX-License-Identifier: Apache-2.0

// Tidemill runs large evals of agents: on this machine with one command, or on fleets
// of workers. See tidemill --help.
package main

import (
	"os"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

func main() {
	subprocess.Main()
	os.Exit(app.Main(root()))
}
