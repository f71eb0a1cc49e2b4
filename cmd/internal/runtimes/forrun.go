// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// ForRun makes the runtime of a run. from says who asks for it. A type that there is not
// is a usage error.
func ForRun(c Config, run *manifest.Run, from string) (map[string]runtime.Runtime, error) {
	rts, err := New(c, run.Runtime.Type)
	if err == nil {
		return rts, nil
	}
	err = fmt.Errorf("%s: runtime.type: %w", from, err)
	if _, ok := errors.AsType[*UnknownTypeError](err); ok {
		return nil, app.Usage(err)
	}
	return nil, err
}

// AdmitHere refuses a run that could not run in this process: a secret is not set, or the
// runtime can't do what it wants. Both are usage errors.
func AdmitHere(ctx context.Context, rts map[string]runtime.Runtime, run *manifest.Run, storeUUID string) error {
	if _, missing := trial.SecretsFrom(run.Agent.Secrets); len(missing) > 0 {
		return app.Usage(app.Hint(fmt.Errorf("%s: agent.secrets: %s is not set in the environment", run.File, missing[0]),
			"export %s first; secrets come from the environment and are never written down", missing[0]))
	}
	err := Admit(ctx, rts, run, storeUUID)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", run.File, err)
	if _, ok := errors.AsType[*runtime.UnsupportedError](err); ok {
		return app.Usage(err)
	}
	return err
}
