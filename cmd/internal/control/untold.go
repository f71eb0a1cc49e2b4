// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/queue"
)

// untold collects the runs of which the queue could not be told.
type untold struct {
	sure, open []string // by whether workers obey by themselves
	why        error    // the first of the two kinds that is said
	whyOpen    error
}

// note takes the answer out of an error that says that only the queue doesn't know.
func (u *untold) note(err error) (*producer.Answer, error) {
	e, ok := errors.AsType[*producer.UntoldError](err)
	if !ok {
		return nil, err
	}
	// What nobody can be sure of is left to who gave the order: a queue that refuses us may
	// refuse the workers too.
	if e.Answer.Unpublished || !errors.Is(e.Err, queue.ErrUnreachable) {
		u.open, u.whyOpen = append(u.open, e.Answer.Run), first(u.whyOpen, e.Err)
	} else {
		u.sure, u.why = append(u.sure, e.Answer.Run), first(u.why, e.Err)
	}
	return e.Answer, nil
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// tell warns of the runs that will be as they were asked to be, and returns the error of
// the others.
func (u *untold) tell(w io.Writer) error {
	if len(u.sure) > 0 {
		fmt.Fprintf(w, "tidemill: warning: the queue could not be told of %s: %s\n", strings.Join(u.sure, ", "), logview.Visible([]byte(u.why.Error())))
		fmt.Fprintln(w, "tidemill: warning: it is written down: the fleet's workers obey within seconds of reaching the queue again")
	}
	if len(u.open) == 0 {
		return nil
	}
	return app.Hint(fmt.Errorf("the queue could not be told of %s: %w", strings.Join(u.open, ", "), u.whyOpen),
		"it is written down; give the same command again when the queue can be told")
}
