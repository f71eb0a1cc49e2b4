// SPDX-License-Identifier: Apache-2.0

package submitcmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/fleet"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/queue"
)

// rosterTimeout bounds the look at who is there. What was submitted is submitted.
const rosterTimeout = 5 * time.Second

// warn says why no worker takes trials of these runs, a line for each reason. It says
// nothing where that can't be told.
func warn(ctx context.Context, w io.Writer, roster queue.Roster, subs []*producer.Submission) {
	ctx, cancel := context.WithTimeout(ctx, rosterTimeout)
	defer cancel()
	workers, err := roster.Workers(ctx)
	if err != nil {
		return
	}
	said := map[string]bool{}
	for _, sub := range subs {
		run, err := dispatch.QueueRun(sub.Record)
		if err != nil || sub.Committed >= sub.Total {
			continue
		}
		why := strings.Join(fleet.HeldUp(workers, run), "; ")
		if why == "" || said[why] {
			continue
		}
		said[why] = true // the runs of a matrix mostly wait for the same
		fmt.Fprintf(w, "tidemill: warning: run %s waits in the queue: %s\n", run.ID, logview.Visible([]byte(why)))
	}
}
