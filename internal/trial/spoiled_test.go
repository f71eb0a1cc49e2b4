// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"errors"
	"testing"

	"github.com/tidemill/tidemill/internal/trial"
)

// What our own trouble may have brought about is no result, but a pass is one.
func TestSpoiled(t *testing.T) {
	full := errors.New("the disk was full")
	for name, c := range map[string]struct {
		agent, grader []string
		why           error
		want          trial.Ending
	}{
		"a pass counts":                   {agent: argv("write out.txt hello"), why: full, want: trial.Graded},
		"a failure doesn't":               {agent: argv("exit 4"), why: full, want: trial.InfraFailed},
		"a failure counts where all well": {agent: argv("exit 4"), want: trial.Graded},
		"the provider's doesn't":          {agent: argv(`write agent/status.json {"termination_reason":"rate_limit"}`), why: full, want: trial.InfraFailed},
		"the grader's doesn't":            {grader: argv("exit 1"), why: full, want: trial.InfraFailed},
		"the grader's where all well":     {grader: argv("exit 1"), want: trial.GraderFailed},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			if c.agent != nil {
				j.agent(c.agent...)
			}
			if c.grader != nil {
				j.grader(c.grader...)
			}
			j.Spoiled = func() error { return c.why }
			got := j.run(t, t.Context())
			if got.Ending != c.want {
				t.Fatalf("ended as %s, want %s", got.Ending, c.want)
			}
			if c.want == trial.InfraFailed && (got.Outcome.Detail != full.Error() || got.Permanent) {
				t.Errorf("outcome %+v, permanent %t; want one that is tried again and says why", got.Outcome, got.Permanent)
			}
		})
	}
}
