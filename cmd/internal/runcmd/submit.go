// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"errors"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/naming"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/queue"
)

// submitAll enqueues what is open of every run. Workers begin with the first run while the
// others follow.
func (s *session) submitAll(ctx context.Context) error {
	namer := naming.Namer{RunID: s.runID, Store: s.store, Continue: true, Now: time.Now()}
	for _, drafts := range s.drafts {
		before := len(s.runs)
		fresh := false
		err := namer.Submit(ctx, drafts, func(d *producer.Draft, o producer.Options) error {
			fresh = o.New
			return s.submitOne(ctx, d, o)
		})
		if err != nil {
			return err
		}
		if fresh {
			s.tellEarlier(ctx, &namer, s.runs[before])
		}
	}
	return nil
}

func (s *session) submitOne(ctx context.Context, d *producer.Draft, o producer.Options) error {
	p := producer.Producer{
		Store: s.store, StoreUUID: s.identity.StoreUUID, Queue: s.queue, Log: s.log, Version: version.String(),
		Pool:       queue.DefaultPool,
		OnProgress: func(p producer.Progress) { s.tracker.Plan(o.RunID, p.Total, p.Committed) },
	}
	o.NotPaused = true
	sub, err := p.Submit(ctx, d, o)
	if _, ok := errors.AsType[*producer.PlanConflictError](err); ok {
		return app.Usage(err)
	}
	if err != nil {
		return s.refused(err)
	}
	s.works.add(sub.Record)
	s.tracker.Plan(sub.Record.RunID, sub.Total, sub.Committed)
	s.runs = append(s.runs, sub.Record)
	s.reporter.Submitted(progress.Run{
		RunID: sub.Record.RunID, Group: sub.Record.Group, Continued: sub.Continued,
		Tasks: sub.Record.Plan.Tasks, Trials: sub.Total, Done: sub.Committed,
	})
	return nil
}
