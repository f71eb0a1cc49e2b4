// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/flight"
	"github.com/tidemill/tidemill/internal/redact"
	"github.com/tidemill/tidemill/internal/trial"
)

// A panic in a runtime, or in our own code, is that attempt's trouble and not that of
// the trials beside it: it becomes an infra_error with a bundle like any other.

// panicFile is where a bundle has the stack.
const panicFile = "logs/panic.txt"

// afterPanic removes the sandbox, which nobody else knows any more, and writes the
// bundle anew, with what there was of the first one under partial/.
func (wk *work) afterPanic(p *flight.PanicError, cfg trial.Config, broken *bundle.Writer) (rep trial.Report, files *bundle.Writer) {
	wk.log.Error().Err(p).Bytes("stack", p.Stack).Msg("attempt panicked")
	if err := flight.Safely(wk.removeSandbox); err != nil {
		wk.log.Error().Err(err).Msg("sandbox of the attempt that panicked could not be removed")
	}
	partial := wk.dir
	wk.dir += ".panic"
	red := redact.New(cfg.SecretValues()...)
	err := flight.Safely(func() (err error) {
		if files, err = bundle.NewWriter(wk.dir, wk.w.spares); err != nil {
			return err
		}
		if err := files.WriteFile(panicFile, red.Bytes(fmt.Appendf(nil, "%v\n\n%s", p, p.Stack))); err != nil {
			return err
		}
		if broken != nil {
			if err := salvage(partial, files); err != nil {
				wk.log.Warn().Err(err).Msg("files of the attempt that panicked could not be kept")
			}
			if err := broken.Remove(); err != nil {
				wk.log.Warn().Err(err).Msg("spool could not be cleared")
			}
		}
		cfg.Files, cfg.Early = files, &trial.EarlyFailure{Ending: trial.InfraFailed, Err: p}
		rep = trial.Run(wk.ctx, cfg)
		return nil
	})
	if err != nil {
		return lost(errors.Join(p, err)), nil
	}
	return rep, files
}

// salvage copies what stands in the directory of a bundle into another one.
func salvage(dir string, into *bundle.Writer) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return into.WriteFile("partial/"+filepath.ToSlash(name), body)
	})
}

// removeSandbox destroys what carries the labels of this attempt. It is ours: no other
// attempt has the number, and no other process the worker's name.
func (wk *work) removeSandbox() error {
	rt, ok := wk.w.Runtimes[wk.rec.Run.Runtime.Type]
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(wk.ctx), 2*time.Minute)
	defer cancel()
	all, err := rt.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range all {
		l := r.Labels
		if l.Store == wk.w.StoreUUID && l.Trial == wk.row.TrialID && l.Attempt == wk.claim.Attempt && l.Worker == wk.w.Name {
			errs = append(errs, rt.Destroy(ctx, r.Handle))
		}
	}
	return errors.Join(errs...)
}
