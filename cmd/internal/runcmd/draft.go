// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/internal/producer"
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
			if err := runtimes.AdmitHere(ctx, s.runtimes, run, s.identity.StoreUUID); err != nil {
				return err
			}
			programs := runtimes.NewPrograms(run)
			d, err := producer.NewDraft(ctx, run, load, s.dir.Temp(), runtimes.TaskCheck(s.runtimes, run), programs.Task)
			if err != nil {
				return app.InputError(ctx, err)
			}
			s.onClose(d.Close)
			for _, missing := range programs.Missing() {
				s.log.Warn().Str("file", run.File).Msg(missing + " of this machine")
			}
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
	rts, err := runtimes.ForRun(runtimes.Config{Dir: s.dir.Work(), StoreUUID: s.identity.StoreUUID, Hide: []string{s.dir.Store()}}, run, from)
	if err != nil {
		return err
	}
	s.runtimes[kind] = rts[kind]
	return nil
}
