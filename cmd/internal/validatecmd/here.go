// SPDX-License-Identifier: Apache-2.0

package validatecmd

import (
	"context"
	"fmt"
	"os"

	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

// here says why a run that is right could not run on this machine.
func here(ctx context.Context, run *manifest.Run) []string {
	var notes []string
	_, missing := trial.SecretsFrom(run.Agent.Secrets)
	for _, name := range missing {
		notes = append(notes, fmt.Sprintf("agent.secrets: %s is not set in the environment", name))
	}
	if err := admit(ctx, run); err != nil {
		notes = append(notes, err.Error())
	}
	return notes
}

// nobody is the store of runtimes that are only asked what they can do.
const nobody = "00000000-0000-4000-8000-000000000000"

func admit(ctx context.Context, run *manifest.Run) error {
	dir, err := os.MkdirTemp("", "tidemill-validate-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rts, err := runtimes.New(runtimes.Config{Dir: dir, StoreUUID: nobody}, run.Runtime.Type)
	if err != nil {
		return err
	}
	defer runtimes.Close(rts)
	return runtimes.Admit(ctx, rts, run, nobody)
}
