// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

// deed is what the agent of a task does. Whatever happens to the machines, a trial of it
// ends in one way only.
type deed string

const (
	doPass  deed = "pass"  // answers right
	doFail  deed = "fail"  // answers wrong
	doCrash deed = "crash" // ends with 3 and no answer
	doHang  deed = "hang"  // goes on beyond its time
	doLimit deed = "limit" // its provider refuses it in the first attempt; it passes in the others
)

// want is how a trial ends that was not given up for trouble of ours.
func (d deed) want() (bundle.Status, float64) {
	switch d {
	case doPass, doLimit:
		return bundle.Completed, 1
	case doHang:
		return bundle.TimedOut, 0
	}
	return bundle.Completed, 0
}

// judge compares what was committed with what had to come, and says what is wrong. unscored
// is a trial whose attempts were used up by trouble of ours: no result, but no lie either.
func (d deed) judge(c bundle.Commit) (wrong string, unscored bool) {
	if !c.Outcome.Scored {
		if c.Outcome.FailureClass == bundle.InfraFailure {
			return "", true
		}
		return fmt.Sprintf("%s ended unscored, %s: %s", d, c.Outcome.TerminationReason, c.Outcome.Detail), false
	}
	status, score := d.want()
	if c.Outcome.Status != status || c.Grade.Score == nil || *c.Grade.Score != score {
		got := "none"
		if c.Grade.Score != nil {
			got = fmt.Sprint(*c.Grade.Score)
		}
		return fmt.Sprintf("%s ended %s (%s) with score %s, want %s with %v; attempt %d on %s, %s %s", d,
			c.Outcome.Status, c.Outcome.TerminationReason, got, status, score, c.Attempt, c.Worker, c.Outcome.Detail, c.Grade.Reasons), false
	}
	return "", false
}

// agent reads what to do from the instruction. It writes some evidence, so that there are
// files whose sums can be wrong.
const agent = `read -r deed seconds bytes <"$TIDEMILL_INSTRUCTION_FILE"
echo "attempt $TIDEMILL_ATTEMPT of $TIDEMILL_TASK_ID: $deed"
head -c "$bytes" /dev/urandom >"$TIDEMILL_LOGS_DIR/artifacts/noise" || exit 4
case $deed in
hang) sleep 60 ;;
limit) if [ "$TIDEMILL_ATTEMPT" = 1 ]; then
  echo '{"termination_reason": "rate_limit"}' >"$TIDEMILL_LOGS_DIR/agent/status.json"; exit 1
  fi ;;
esac
sleep "$seconds"
case $deed in
pass | limit) echo 1 >answer || exit 4 ;;
fail) echo 0 >answer || exit 4 ;;
crash) exit 3 ;;
esac
`

const grader = `answer=0
if [ -s "$TIDEMILL_WORKDIR/answer" ]; then read -r answer <"$TIDEMILL_WORKDIR/answer"; fi
echo "$answer" >"$TIDEMILL_LOGS_DIR/verifier/reward.txt"
`

// deeds draws what each task does.
func deeds(seed uint64, n int) []deed {
	rng := rand.New(rand.NewPCG(seed, 1))
	list := make([]deed, n)
	for i := range list {
		switch p := rng.IntN(100); {
		case p < 70:
			list[i] = doPass
		case p < 82:
			list[i] = doFail
		case p < 90:
			list[i] = doCrash
		case p < 94:
			list[i] = doHang
		default:
			list[i] = doLimit
		}
	}
	return list
}

func taskID(i int) string { return fmt.Sprintf("task-%06d", i) }

// writeRun writes a run file with its pack, and returns its path.
func writeRun(t testing.TB, dir string, seed uint64, list []deed) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	var rows strings.Builder
	for i, d := range list {
		fmt.Fprintf(&rows, "{\"id\":%q,\"deed\":%q,\"seconds\":\"%.2f\",\"bytes\":%d}\n",
			taskID(i), d, 0.2+2.5*rng.Float64()*rng.Float64(), rng.IntN(40_000))
	}
	files := map[string]string{
		"pack/rows.jsonl":     rows.String(),
		"pack/tests/grade.sh": grader,
		"agent/run.sh":        agent,
		"pack/pack.yaml": `version: 1
kind: dataset
name: chaos
dataset: {path: rows.jsonl, id_field: id}
agent_fields: [deed, seconds, bytes]
instruction: "{{.deed}} {{.seconds}} {{.bytes}}\n"
grade: {command: [sh, "${TIDEMILL_TESTS_DIR}/grade.sh"]}
`,
		"run.yaml": `version: 1
name: chaos
packs: [./pack]
agent: {name: chaos, command: [sh, agent/run.sh], files: ./agent, timeout: 4s}
runtime: {type: subprocess}
network_policy: full_internet
retry: {max_attempts: 20, min_backoff: 200ms, max_backoff: 2s}
limits: {breaker: {max_infra_share: 1}}
`,
	}
	for name, body := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "run.yaml")
}
