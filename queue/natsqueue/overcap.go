// SPDX-License-Identifier: Apache-2.0

package natsqueue

import "context"

// The server gives out what comes back, because it was handed back or its holder died,
// whatever the cap of its run: it counts as delivered all the while. That is right as long
// as the cap stays. After it was lowered, more would begin than may run.

// waits puts a job that came back behind those that wait, if more of its run are delivered
// than its cap allows. It reports whether it did; where that can't be told or done, the job
// is to be worked on.
func (l *lease) waits(ctx context.Context) bool {
	most := l.run.Limits.MaxInFlight
	if most <= 0 || !l.delivery.again {
		return false
	}
	delivered := 0
	err := l.q.call(ctx, "look at run "+l.run.ID, func(ctx context.Context) error {
		c, err := l.q.js.Consumer(ctx, trialsStream, l.run.ID)
		if err == nil {
			delivered = c.CachedInfo().NumAckPending
		}
		return err
	})
	return err == nil && delivered > most && l.Retry(ctx, 0, nil) == nil
}
