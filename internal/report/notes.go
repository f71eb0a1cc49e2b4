// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bundle"
)

// title says which run a table is of.
func title(agg *Aggregate) string {
	parts := []string{"run " + printable(agg.RunID), "agent " + printable(agg.Agent)}
	for _, name := range slices.Sorted(maps.Keys(agg.Matrix)) {
		parts = append(parts, shorten(printable(name), maxTaskWidth)+"="+shorten(printable(agg.Matrix[name]), maxTaskWidth))
	}
	return strings.Join(parts, "  ")
}

// maxReasons is how many reasons are shown with an example.
const maxReasons = 10

// writeExamples writes a line for each reason why trials have no score.
func writeExamples(b *strings.Builder, outcomes Outcomes, o TableOptions) {
	for i, reason := range mostFirst(outcomes.UnscoredByReason) {
		if i == maxReasons {
			fmt.Fprintf(b, "  … %d more reasons are in %s\n", len(outcomes.UnscoredByReason)-maxReasons, AggregateFile)
			return
		}
		if e := outcomes.UnscoredExamples[reason]; e != nil {
			fmt.Fprintf(b, "  %d %s, e.g. %s\n", outcomes.UnscoredByReason[reason], shorten(printable(reason), maxTaskWidth), o.example(e))
		}
	}
}

// writeEarlyEnds writes how agents ended that were scored without being done: a run out of
// time looks like any other failure in the numbers.
func writeEarlyEnds(b *strings.Builder, outcomes Outcomes) {
	early := map[string]int64{}
	for reason, n := range outcomes.ByTerminationReason {
		if scored := n - outcomes.UnscoredByReason[reason]; scored > 0 && reason != bundle.ReasonAgentDone {
			early[reason] = scored
		}
	}
	if rest := without(early, 0); rest != "" {
		fmt.Fprintf(b, "scored, but the agent was not done: %s\n", rest)
	}
}

// writeBadExits writes that agents ended badly: what looks like a bad agent may be a
// broken one.
func writeBadExits(b *strings.Builder, agg *Aggregate, o TableOptions) {
	if e := agg.AgentNonzeroExitExample; e != nil {
		trials := "trials"
		if agg.Committed == 1 {
			trials = "trial"
		}
		fmt.Fprintf(b, "note: in %d of %d %s the agent ended with a non-zero exit code or by a signal, e.g. %s\n",
			agg.AgentNonzeroExits, agg.Committed, trials, o.example(e))
	}
}

// example shows a trial, what there is to say of it, and where to look.
func (o TableOptions) example(e *Example) string {
	text := fmt.Sprintf("%s#%d", shorten(printable(e.TaskID), maxTaskWidth), e.TrialIndex)
	if said := firstSentence(e.Detail); said != "" {
		text += ": " + said
	}
	path := e.Log
	if o.Path != nil {
		path = o.Path(path)
	}
	return text + "; see " + printable(path)
}

// maxSentence is the room for a sentence.
const maxSentence = 200

// firstSentence is the beginning of a text of any length.
func firstSentence(text string) string {
	text = strings.TrimSpace(text)
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, ". ")
	return shorten(printable(strings.TrimRight(text, " \t\r.")), maxSentence)
}
