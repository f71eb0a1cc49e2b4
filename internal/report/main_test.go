// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/bundle"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memSpool keeps what is written.
type memSpool map[string]*bytes.Buffer

func (s memSpool) Create(name string) (io.Writer, error) {
	if s[name] != nil {
		return nil, fmt.Errorf("%s is created twice", name)
	}
	s[name] = &bytes.Buffer{}
	return s[name], nil
}

// text is all of it.
func (s memSpool) text() map[string]string {
	out := map[string]string{}
	for name, buf := range s {
		out[name] = buf.String()
	}
	return out
}

var epochZero = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func rowOf(task string, index int) bundle.PlanRow {
	return bundle.PlanRow{TaskID: task, TrialIndex: index, TrialID: bundle.TrialID("store", "run", task, index), Pack: "aa"}
}

// graded is the commit of a trial with a score.
func graded(row bundle.PlanRow, score float64, ms int) *bundle.Commit {
	c := unscored(row, bundle.Completed, bundle.ReasonAgentDone, bundle.NoFailure, ms)
	c.Outcome.Scored = true
	c.Grade = bundle.Grade{Scored: true, BinaryPass: score >= 1, Score: &score, PassThreshold: 1}
	if score < 1 {
		c.Outcome.FailureClass = bundle.AgentFailure
	}
	return c
}

func unscored(row bundle.PlanRow, status bundle.Status, reason string, class bundle.FailureClass, ms int) *bundle.Commit {
	return &bundle.Commit{
		SchemaVersion: 1, TrialID: row.TrialID, TaskID: row.TaskID, TrialIndex: row.TrialIndex, Epoch: 1, Attempt: 1,
		Outcome: bundle.Outcome{Status: status, TerminationReason: reason, FailureClass: class},
		Metrics: bundle.Metrics{SchemaVersion: 1, LatencyTotalS: bundle.NewSeconds(time.Duration(ms) * time.Millisecond)},
		At:      epochZero.Add(time.Duration(row.TrialIndex) * time.Minute),
	}
}

func header(repeats int) Header {
	return Header{
		RunID: "demo-1", Name: "demo", Agent: "oracle", PlanDigest: "d1", Repeats: repeats,
		GeneratedBy: "tidemill test", CreatedAt: epochZero,
	}
}

func accumulate(t rapid.TB, head Header, trials []Trial) (*Aggregate, memSpool) {
	t.Helper()
	spool := memSpool{}
	acc, err := NewAccumulator(head, spool)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range trials {
		if err := acc.Add(tr); err != nil {
			t.Fatal(err)
		}
	}
	agg, err := acc.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return agg, spool
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (run with -update to accept):\n%s", name, diff)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }
