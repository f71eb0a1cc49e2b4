// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemill/tidemill/bundle"
)

// maxText is how long a sentence in a record may be, in bytes: outcomes are a part of
// commits, and those are read by the million.
const maxText = 2000

// text makes a sentence for records of what may come from a program: without secrets,
// valid, and of bounded length. White space at its ends goes, see [prose].
func (a *attempt) text(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(a.redact.String(s), "\ufffd"))
	if len(s) <= maxText {
		return s
	}
	cut := maxText
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes left out)", s[:cut], len(s)-cut)
}

// inStep says in which step of several an attempt failed.
func (a *attempt) inStep(f *failure) string {
	if len(a.Task.Steps) < 2 || a.step == nil {
		return f.detail
	}
	return fmt.Sprintf("step %s: %s", a.stepLabel(), f.detail)
}

// stepLabel names the step in a way that no other step of the task has.
func (a *attempt) stepLabel() string {
	if a.step.Name == "" {
		return fmt.Sprint(a.number + 1)
	}
	return fmt.Sprintf("%d-%s", a.number+1, strings.ReplaceAll(a.step.Name, "/", "_"))
}

// stamp is the time format of records: RFC 3339 in UTC with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// since returns the time since t as a metric.
func since(t time.Time) bundle.Seconds { return bundle.NewSeconds(time.Since(t)) }

// addSince adds the time since t to a metric that several steps share.
func addSince(m **bundle.Seconds, t time.Time) {
	d := time.Since(t)
	if *m != nil {
		d += time.Duration((*m).Millis()) * time.Millisecond
	}
	*m = new(bundle.NewSeconds(d))
}
