// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"fmt"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

// saidError says that an order wants what is so already, by which decision, or 0.
type saidError struct{ rev int }

func (e *saidError) Error() string { return fmt.Sprintf("decision %d says so already", e.rev) }

// rule is what an order decides about a run that is in a state, a [saidError] when nothing
// has to be decided, or a [RefusedError].
func rule(rec manifest.RunRecord, o Order, s bundle.ControlState, done int) (bundle.Control, error) {
	c := bundle.Control{Kind: o.Kind, By: o.By, Args: reasons(o)}
	if done >= rec.Plan.Trials && o.Kind != bundle.ControlLimits {
		return c, &RefusedError{
			Text: fmt.Sprintf("run %s is complete: all of its %d trials are done", rec.RunID, rec.Plan.Trials),
			Fix:  "tidemill retry and tidemill regrade do trials again",
		}
	}
	switch o.Kind {
	case bundle.ControlPause:
		return c, pausable(rec, o, s)
	case bundle.ControlResume:
		return c, resumable(rec, s)
	case bundle.ControlCancel:
		if s.Ended != nil && s.Ended.Kind == bundle.ControlCancel {
			return c, &saidError{s.Ended.Rev}
		}
		return c, nil
	case bundle.ControlStop:
		if s.Ended != nil {
			return c, &saidError{s.Ended.Rev}
		}
		return c, nil
	case bundle.ControlPriority:
		c.Args = map[string]any{bundle.ArgPriority: o.Priority}
		return c, prioritizable(rec, o, s)
	case bundle.ControlLimits:
		c.Args = o.Limits.Args()
		return c, limitable(rec, o, s)
	}
	return c, fmt.Errorf("no order is called %q", o.Kind)
}

func reasons(o Order) map[string]any {
	args := map[string]any{}
	for name, text := range map[string]string{bundle.ArgReason: o.Reason, bundle.ArgDetail: o.Detail} {
		if text != "" {
			args[name] = text
		}
	}
	if len(args) == 0 {
		return nil
	}
	return args
}

// pausable: a person's pause goes before one of ours, which could end by itself. Ours
// goes before none.
func pausable(rec manifest.RunRecord, o Order, s bundle.ControlState) error {
	switch {
	case s.Ended != nil:
		return Ended(rec.RunID, s.Ended)
	case s.Paused != nil && (s.Paused.Reason() == o.Reason || o.Reason != ""):
		return &saidError{s.Paused.Rev}
	}
	return nil
}

// resumable: what a limit has stopped would be stopped again at once.
func resumable(rec manifest.RunRecord, s bundle.ControlState) error {
	deadline := dispatch.Deadline(&rec, s)
	switch {
	case !s.Held():
		return &saidError{}
	case s.Paused.Reason() == bundle.ReasonBudget:
		return &RefusedError{
			Text: fmt.Sprintf("run %s is paused for its budget: %s", rec.RunID, s.Paused.Detail()),
			Fix:  fmt.Sprintf("raise it with tidemill limits %s --max-budget-usd N; 0 is no limit", rec.RunID),
		}
	case !deadline.IsZero() && !time.Now().Before(deadline):
		return &RefusedError{
			Text: fmt.Sprintf("run %s is past its deadline, %s", rec.RunID, deadline.UTC().Format(time.DateTime)+" UTC"),
			Fix:  fmt.Sprintf("move it with tidemill limits %s --deadline DURATION, counted from when the run was made; 0 is none", rec.RunID),
		}
	}
	return nil
}

func prioritizable(rec manifest.RunRecord, o Order, s bundle.ControlState) error {
	run, err := dispatch.QueueRun(rec)
	if err != nil {
		return err
	}
	now := dispatch.Steer(run, s)
	if s.Ended != nil {
		return Ended(rec.RunID, s.Ended)
	}
	if string(now.Priority) == o.Priority {
		return &saidError{s.Rev}
	}
	if now.Priority = queue.Priority(o.Priority); now.Validate() != nil {
		return &RefusedError{Text: fmt.Sprintf("priority %q: want low, normal or high", o.Priority)}
	}
	return nil
}

func limitable(rec manifest.RunRecord, o Order, s bundle.ControlState) error {
	if s.Ended != nil && s.Ended.Kind == bundle.ControlCancel {
		return Ended(rec.RunID, s.Ended)
	}
	if err := o.Limits.Validate(); err != nil {
		return &RefusedError{Text: err.Error()}
	}
	if o.Limits.Empty() {
		return &RefusedError{Text: "no limit is given", Fix: "name one, such as --max-budget-usd 80"}
	}
	if o.Limits.Over(s.Limits).Same(s.Limits) {
		return &saidError{s.Rev}
	}
	return nil
}

// Ended is the refusal to do something with a run that was ended.
func Ended(run string, c *bundle.Control) *RefusedError {
	e := &RefusedError{
		Text: fmt.Sprintf("run %s %s", run, Told(c)),
		Fix:  fmt.Sprintf("tidemill resume %s takes it up again", run),
	}
	if c.Reason() == bundle.ReasonDeadline {
		e.Fix = fmt.Sprintf("move the deadline with tidemill limits %s --deadline DURATION; 0 is none", run)
	}
	return e
}

// Told says in words what a decision did to a run: "was paused by ada at …: …".
func Told(c *bundle.Control) string {
	verb := map[string]string{
		bundle.ControlPause: "was paused", bundle.ControlCancel: "was cancelled", bundle.ControlStop: "was stopped",
	}[c.Kind]
	text := fmt.Sprintf("%s by %s at %s UTC", verb, c.By, c.At.UTC().Format(time.DateTime))
	if why := c.Detail(); why != "" {
		return text + ": " + why
	}
	if why := c.Reason(); why != "" {
		return text + ": " + why
	}
	return text
}
