// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// draft reads every task of every run, and asks the runtimes whether they can do what
// the runs want.
func (s *session) draft(ctx context.Context, files []app.RunFile, load manifest.LoadOptions) error {
	if err := s.openRuntimes(files); err != nil {
		return err
	}
	for _, file := range files {
		var drafts []*producer.Draft
		for _, run := range file.Runs {
			if err := s.admit(ctx, run); err != nil {
				return err
			}
			d, err := producer.NewDraft(ctx, run, load, s.dir.Temp())
			if err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return app.Usage(err)
			}
			s.onClose(d.Close)
			drafts = append(drafts, d)
		}
		s.drafts = append(s.drafts, drafts)
	}
	return nil
}

func (s *session) openRuntimes(files []app.RunFile) error {
	for _, file := range files {
		for _, run := range file.Runs {
			if err := s.openRuntime(run, file.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// openRuntime makes the runtime of a run, unless it is there. from says who asks for it.
func (s *session) openRuntime(run *manifest.Run, from string) error {
	if s.runtimes == nil {
		s.runtimes = map[string]runtime.Runtime{}
		s.onClose(func() error { return runtimes.Close(s.runtimes) })
	}
	kind := run.Runtime.Type
	if s.runtimes[kind] != nil {
		return nil
	}
	rts, err := runtimes.New(runtimes.Config{Dir: s.dir.Work(), StoreUUID: s.identity.StoreUUID}, kind)
	if err != nil {
		err = fmt.Errorf("%s: runtime.type: %w", from, err)
		if _, ok := errors.AsType[*runtimes.UnknownTypeError](err); ok {
			return app.Usage(err)
		}
		return err
	}
	s.runtimes[kind] = rts[kind]
	return nil
}

// admit refuses a run that could not run here.
func (s *session) admit(ctx context.Context, run *manifest.Run) error {
	if _, missing := trial.SecretsFrom(run.Agent.Secrets); len(missing) > 0 {
		return app.Usage(app.Hint(fmt.Errorf("%s: agent.secrets: %s is not set in the environment", run.File, missing[0]),
			"export %s first; secrets come from the environment and are never written down", missing[0]))
	}
	err := runtimes.Admit(ctx, s.runtimes, run, s.identity.StoreUUID)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", run.File, err)
	if _, ok := errors.AsType[*runtime.UnsupportedError](err); ok {
		return app.Usage(err)
	}
	return err
}
