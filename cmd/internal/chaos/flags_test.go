// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	trials   = flag.Int("chaos.trials", 0, "trials of TestChaos; 0 skips it")
	seed     = flag.Uint64("chaos.seed", 0, "what the plan is drawn from; 0 draws a seed too")
	faults   = flag.String("chaos.faults", "all", "kinds of faults with commas between them, or all")
	nodes    = flag.String("chaos.nodes", "auto", "where NATS runs: containers, processes, or auto")
	workers  = flag.Int("chaos.workers", 3, "workers at a time")
	slots    = flag.Int("chaos.slots", 4, "slots of each")
	lease    = flag.Duration("chaos.lease", 3*time.Second, "how long a lease lives")
	out      = flag.String("chaos.out", "", "directory for chaos.json and chaos.md")
	patience = flag.Duration("chaos.patience", 2*time.Hour, "how long the run may take")
	keep     = flag.Bool("chaos.keep", false, "keep the directories of a run in which all is well too")
	verbose  = flag.Bool("chaos.v", false, "log each fault when it happens")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
