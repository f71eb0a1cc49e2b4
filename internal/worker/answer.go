// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/queue"
)

// answerTimeout bounds an answer to the queue. When it can't be given, the next
// delivery finds the commit.
const answerTimeout = 30 * time.Second

// answer ends the lease with a word to the queue. A lease that is known to be somebody
// else's ends without one.
func (wk *work) answer(what string, say func(context.Context) error) {
	wk.endBeat()
	if wk.gone() {
		wk.lease.Abandon()
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(wk.ctx), answerTimeout)
	defer cancel()
	if err := say(ctx); err != nil {
		wk.log.Warn().Err(err).Str("answer", what).Msg("the queue did not take the answer")
		wk.lease.Abandon()
	}
}

// abandon ends the lease without a word.
func (wk *work) abandon() {
	wk.endBeat()
	wk.lease.Abandon()
}

// letGo answers a lease whose trial was stopped from outside.
func (wk *work) letGo(cause error) {
	if errors.Is(cause, trial.ErrHandOver) {
		wk.answer("hand over", wk.lease.HandBack)
		return
	}
	wk.abandon() // lost or purged: there is nobody to tell
}

// errRevoked is the cause when the queue says by itself that a lease is over.
var errRevoked = fmt.Errorf("%w, or another worker has the trial now", trial.ErrCancelled)

// gone reports whether somebody else is known to speak for the trial.
func (wk *work) gone() bool {
	cause := context.Cause(wk.ctx)
	return errors.Is(cause, queue.ErrLost) || errors.Is(cause, errRevoked)
}
