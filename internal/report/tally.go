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

func (t tally) add(word string) {
	if word == "" {
		word = noWord
	}
	if _, known := t[word]; !known && len(t) >= maxWords {
		word = otherWords
	}
	t[word]++
}

// outcomes counts committed trials by each word of their outcome.
type outcomes struct{ status, reason, class, unscored tally }

func (o *outcomes) add(c *bundle.Commit) {
	o.status.add(string(c.Outcome.Status))
	o.reason.add(c.Outcome.TerminationReason)
	o.class.add(string(c.Outcome.FailureClass))
	if !hasScore(c) {
		o.unscored.add(c.Outcome.TerminationReason)
	}
}

func (o *outcomes) result() Outcomes {
	return Outcomes{o.status, o.reason, o.class, o.unscored}
}
