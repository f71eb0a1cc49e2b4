// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/tidemill/tidemill/bundle"

// Words of a tally beyond the limit are counted together: an agent may name its own
// termination reason, and must not make a report grow.
const (
	maxWords   = 200
	otherWords = "(other)"
	noWord     = "(none)"
)

// tally counts words.
type tally map[string]int64

// add counts a word and returns what it was counted as.
func (t tally) add(word string) string {
	if word == "" {
		word = noWord
	}
	if _, known := t[word]; !known && len(t) >= maxWords {
		word = otherWords
	}
	t[word]++
	return word
}

// outcomes counts committed trials by each word of their outcome.
type outcomes struct {
	status, reason, class, unscored tally
	examples                        examples // of the unscored
}

func newOutcomes() outcomes { return outcomes{tally{}, tally{}, tally{}, tally{}, examples{}} }

func (o *outcomes) add(keys bundle.Keys, c *bundle.Commit) {
	o.status.add(string(c.Outcome.Status))
	o.reason.add(c.Outcome.TerminationReason)
	o.class.add(string(c.Outcome.FailureClass))
	if !hasScore(c) {
		o.examples.add(o.unscored.add(c.Outcome.TerminationReason), keys, c)
	}
}

func (o *outcomes) result() Outcomes {
	return Outcomes{o.status, o.reason, o.class, o.unscored, o.examples}
}
