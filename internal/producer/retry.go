// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

// Classes are the failure classes by which trials can be chosen.
var Classes = []string{
	string(bundle.InfraFailure), string(bundle.ProviderFailure), string(bundle.GraderFailure),
	string(bundle.TaskFailure), string(bundle.AgentFailure),
}

// retry puts trials back to be done once more, agent and all. It returns an answer beside
// the error where the queue could not be told.
func (p *Producer) retry(ctx context.Context, rec manifest.RunRecord, o Order) (*Answer, error) {
	if err := checkRetry(o.Select); err != nil {
		return nil, err
	}
	others, err := p.otherGraders(ctx, rec)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", rec.RunID, err)
	}
	re, err := p.PutBack(ctx, rec, PutBack{
		Kind: bundle.ControlRetry, By: o.By, Select: o.Select,
		OnDecided: func(re Reopened) {
			if p.OnReopened != nil && !re.Continued {
				p.OnReopened(rec.RunID, re.Trials)
			}
		},
	})
	if re == nil {
		return nil, err
	}
	return &Answer{
		Rev: re.Control.Rev, Changed: !re.Continued, State: StateOpen, Unpublished: true,
		Trials: re.Trials, Enqueued: re.Enqueued, LeftOut: re.LeftOut, OtherGraders: others, TakenOver: re.TakenOver[bundle.ControlRegrade],
	}, err
}

func checkRetry(s Selection) error {
	if len(s.Tasks)+len(s.Trials)+len(s.Classes) == 0 && s.Which == Any {
		return &RefusedError{
			Text: "which trials?",
			Fix:  "choose them with --class, --task, --trial or --unscored",
		}
	}
	for _, c := range s.Classes {
		if !slices.Contains(Classes, c) {
			return &RefusedError{Text: fmt.Sprintf("class %.40q: want one of %s", c, strings.Join(Classes, ", "))}
		}
	}
	return nil
}
