// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/naming"
	"github.com/tidemill/tidemill/manifest"
)

// maxToldEarlier is how many runs are told that stay open.
const maxToldEarlier = 3

// tellEarlier says that runs of the same name stay open beside a new one, which happens
// when a run file or a pack was changed after an interruption.
func (s *session) tellEarlier(ctx context.Context, namer *naming.Namer, rec manifest.RunRecord) {
	open, err := namer.Earlier(ctx, rec.Run.Name)
	if err != nil {
		s.log.Debug().Err(err).Msg("can't tell whether an earlier run is unfinished")
		return
	}
	for i, e := range open {
		if i == maxToldEarlier {
			s.log.Warn().Int("runs", len(open)-i).Msg("more earlier runs of this name are unfinished; tidemill ls lists them")
			return
		}
		old := e.Record
		line := s.log.Warn().Str("run_id", old.RunID).Int("done", e.Done).Int("trials", old.Plan.Trials)
		changed := "it has the same plan, in another matrix"
		if keys := manifest.DiffRuns(old, rec); len(keys) > 0 {
			line.Strs("changed", keys)
			changed = "it has another plan (" + strings.Join(keys, "; ") + ")"
		}
		line.Msgf("the earlier run %s is unfinished, %d of %d trials done, and stays so: %s. "+
			"To go on with it, give the command again with run file and packs as they were; to end it, tidemill cancel %[1]s%[5]s",
			old.RunID, e.Done, old.Plan.Trials, changed, s.dataFlag())
	}
}

// dataFlag is what another command needs to find the data directory.
func (s *session) dataFlag() string {
	switch {
	case s.data == local.DefaultDir:
		return ""
	case strings.ContainsAny(s.data, " \t\"'$\\*?[(;&|<>`"):
		return " --data " + strconv.Quote(s.data)
	}
	return " --data " + s.data
}
