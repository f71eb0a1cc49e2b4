// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/internal/producer"
)

// Tell says in a line what came of an order.
func Tell(o producer.Order, a *producer.Answer) string {
	parts := []string{headline(o, a)}
	if a.Dropped > 0 {
		parts = append(parts, app.Count(a.Dropped, "waiting trial")+" left the queue")
	}
	goesOn := o.Kind == bundle.ControlResume || o.Kind == bundle.ControlRetry
	if goesOn && a.Queued {
		parts = append(parts, fmt.Sprintf("%s to do, %d of them put into the queue now", app.Count(a.Trials, "trial"), a.Enqueued))
	}
	if a.TakenOver > 0 {
		parts = append(parts, fmt.Sprintf("%d of them were open of a regrade, which leaves them", a.TakenOver))
	}
	if len(a.LeftOut) > 0 {
		parts = append(parts, "left out: "+producer.Reasons(a.LeftOut))
	}
	switch {
	case a.Untold != "" && a.Rev > 0:
		parts = append(parts, "it is written down; the queue could not be told")
	case a.Untold != "":
		parts = append(parts, "the queue could not be told")
	case !a.Queued && a.Changed:
		parts = append(parts, "it is written down; no process and no queue was told")
	}
	return strings.Join(parts, "; ")
}

func headline(o producer.Order, a *producer.Answer) string {
	how := "now"
	if !a.Changed {
		how = "already"
	}
	switch o.Kind {
	case bundle.ControlPause:
		return fmt.Sprintf("run %s is paused %s", a.Run, how)
	case bundle.ControlCancel:
		return fmt.Sprintf("run %s is cancelled %s", a.Run, how)
	case bundle.ControlResume:
		if !a.Changed {
			return fmt.Sprintf("run %s was not paused", a.Run)
		}
		return fmt.Sprintf("run %s goes on", a.Run)
	case bundle.ControlPriority:
		return fmt.Sprintf("run %s has priority %s %s", a.Run, o.Priority, how)
	case bundle.ControlLimits:
		return fmt.Sprintf("run %s has these limits %s", a.Run, how)
	case bundle.ControlRetry:
		if !a.Changed {
			return fmt.Sprintf("run %s: the same retry has %s open already", a.Run, app.Count(a.Trials, "trial"))
		}
		return fmt.Sprintf("run %s: %s put back", a.Run, app.Count(a.Trials, "trial"))
	}
	return fmt.Sprintf("run %s: %s", a.Run, o.Kind)
}
