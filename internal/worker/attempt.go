// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/flight"
	"github.com/tidemill/tidemill/internal/trial"
)

// attempt runs the trial and returns with the sandbox gone.
func (wk *work) attempt() (rep trial.Report, files *bundle.Writer) {
	cfg := wk.config()
	wk.dir = filepath.Join(wk.w.spoolDir(), wk.bundleName())
	wk.w.occupy(wk.bundleName())
	live, gone := wk.present()
	defer gone()
	cfg.OnOpen = live.opened
	began := time.Now()
	defer func() { wk.took = time.Since(began) }()
	cfg.Spoiled = func() error { return wk.w.full.since(began) }
	err := flight.Safely(func() (err error) {
		if err := wk.noteAhead(); err != nil {
			return err
		}
		if files, err = bundle.NewWriter(wk.dir, wk.w.spares); err != nil {
			return err
		}
		cfg.Files = watched{files, live}
		if cfg.Early = wk.poisoned(); cfg.Early == nil {
			cfg.Early = wk.prepare(&cfg)
		}
		if cfg.Early != nil {
			if p, ok := errors.AsType[*flight.PanicError](cfg.Early.Err); ok {
				return p
			}
			if e, ok := errors.AsType[*noSecretError](cfg.Early.Err); ok && wk.w.Others {
				wk.refuse(lacks(e.name))
				wk.cancel(&leftToOthers{"left to other workers: " + e.Error()})
			}
		}
		rep = trial.Run(wk.ctx, cfg)
		return nil
	})
	if p, ok := errors.AsType[*flight.PanicError](err); ok {
		return wk.afterPanic(p, cfg, files)
	}
	if err != nil {
		wk.w.foundNoRoom(err)
		return lost(err), nil
	}
	return rep, files
}

func (wk *work) bundleName() string { return nameOf(wk.row.TrialID, wk.claim.Attempt) }

// nameOf is what an attempt's bundle is called on this machine.
func nameOf(trialID string, attempt int) string { return trialID + "." + strconv.Itoa(attempt) }

func (wk *work) config() trial.Config {
	return trial.Config{
		RuntimeType: wk.rec.Run.Runtime.Type,
		Run:         wk.rec, Row: wk.row, Epoch: wk.claim.Epoch, Attempt: wk.claim.Attempt,
		StoreUUID: wk.w.StoreUUID, Worker: wk.w.Name, Version: wk.w.Version, Log: wk.log,
		Keep:    wk.w.Keep,
		Earlier: wk.earlier,
		OnPhase: func(phase string) { wk.emit(Event{Kind: Phase, Phase: phase}) },
	}
}

// prepare fetches what the trial needs. A failure becomes the attempt's outcome.
func (wk *work) prepare(cfg *trial.Config) *trial.EarlyFailure {
	if wk.earlier != nil {
		return wk.prepareRegrade(cfg)
	}
	infra := func(err error) *trial.EarlyFailure {
		return &trial.EarlyFailure{Ending: trial.InfraFailed, Err: err}
	}
	var err error
	if cfg.Task, err = wk.w.shared.task(wk.ctx, wk.row, wk.holdPack); err != nil {
		return infra(fmt.Errorf("task: %w", err))
	}
	if err := wk.taskSecrets(cfg); err != nil {
		return infra(err)
	}
	if cfg.AgentFiles, cfg.AgentFilesName, err = wk.w.shared.agentFiles(wk.ctx, wk.rec, wk.holdPack); err != nil {
		return infra(fmt.Errorf("agent files: %w", err))
	}
	secrets, missing := trial.SecretsFrom(wk.rec.Run.Agent.Secrets)
	if len(missing) > 0 {
		return infra(wk.noSecret(missing[0]))
	}
	cfg.Secrets = secrets
	if cfg.Environment, err = wk.w.shared.environment(wk.ctx, wk.rec); err != nil {
		return &trial.EarlyFailure{Ending: trial.ProvisionFailed, Err: err}
	}
	return nil
}

func (wk *work) noSecret(name string) error { return &noSecretError{name, wk.w.Name} }

// taskSecrets looks up the secrets that the task uses, out of those that its run allows.
func (wk *work) taskSecrets(cfg *trial.Config) error {
	all, needed := cfg.Task.Secrets()
	allowed := slices.Concat(wk.rec.Run.TaskSecrets, wk.rec.Run.Agent.Secrets)
	values, missing := trial.SecretsFrom(slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(allowed, name) }))
	for _, name := range needed {
		switch {
		case !slices.Contains(allowed, name):
			return fmt.Errorf("the task needs the secret %s, which the run doesn't list under task_secrets", name)
		case slices.Contains(missing, name):
			return wk.noSecret(name)
		}
	}
	cfg.TaskSecrets = values
	return nil
}

// lost is the report of an attempt whose bundle could not be begun or stored.
func lost(err error) trial.Report {
	return trial.Report{
		Ending:  trial.InfraFailed,
		Outcome: trial.InfraFailed.Outcome("", PhaseUpload, err.Error()),
	}
}
