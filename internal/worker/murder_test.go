// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// An agent that kills the process of its worker, with SIGKILL and each time: worker after
// worker dies, until one buries the trial. The others of the run are done all the same.
func TestAgentKillsItsWorker(t *testing.T) {
	dir := t.TempDir()
	nats := play(t, "natsd", dirVar+"="+filepath.Join(dir, "nats"), listenVar+"=127.0.0.1:0")
	store, err := dirstore.Open(filepath.Join(dir, "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l := bareLab(t, store, func() queue.Queue {
		q, err := natsqueue.Dial(t.Context(), nats.said, shortLeases())
		if err != nil {
			t.Fatal(err)
		}
		return q
	})
	defer l.queue.Close()
	victim := filepath.Join(dir, "victim")
	var rows strings.Builder
	for _, id := range []string{"before", "killer", "after", "last"} {
		fmt.Fprintf(&rows, "{\"id\":%q}\n", id)
	}
	write(t, filepath.Join(dir, "run", "pack", "rows.jsonl"), rows.String())
	write(t, filepath.Join(dir, "run", "pack", "pack.yaml"), `version: 1
kind: dataset
name: lab
dataset: {path: rows.jsonl, id_field: id}
agent_fields: [id]
instruction: do it
grade: {command: [sh, -c, 'echo 1 >"$TIDEMILL_LOGS_DIR/verifier/reward.txt"']}
`)
	l.plan(filepath.Join(dir, "run"), `version: 1
name: lab
packs: [pack]
agent: {name: mine, command: [sh, -c, 'if [ "$TIDEMILL_TASK_ID" = killer ]; then until kill -9 "$(cat `+victim+`)"; do sleep 0.02; done; exec sleep 30; fi']}
runtime: {type: subprocess, options: {isolation: none}}
network_policy: full_internet
retry: {max_attempts: 1}
`)
	worker := func(n int) *player {
		p := play(t, "worker", dirVar+"="+filepath.Join(dir, fmt.Sprint("w", n)), listenVar+"="+nats.said, storeVar+"="+filepath.Join(dir, "store"))
		if err := os.WriteFile(victim, []byte(p.said), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	// Until its worker's number is written the agent kills nobody, and only waits.
	for n := 1; n <= 3; n++ {
		<-worker(n).ended
		if err := os.Remove(victim); err != nil { // the number may be another process's soon
			t.Fatal(err)
		}
		if as := l.attempts(1); len(as) != n {
			t.Fatalf("after the death of worker %d: %+v", n, as)
		}
	}
	last := worker(4)
	awaitEmpty(t, l.queue)
	l.buried(1, 4)
	for _, row := range []int{0, 2, 3} {
		if c := l.commit(row); !c.Outcome.Scored {
			t.Errorf("%s: %+v", c.TaskID, c.Outcome)
		}
	}
	if as := l.attempts(1); as[0].Claim.Alone || as[1].Claim.Alone || !as[2].Claim.Alone {
		t.Errorf("claims %+v", as)
	}
	last.stop()
	<-last.ended
	if code := last.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the last worker ended with %d", code)
	}
	if c, err := bundle.FindCommit(t.Context(), store, l.keys, l.rows[1].TrialID, 2); c != nil || err != nil {
		t.Errorf("a second epoch: %+v, %v", c, err)
	}
}

// awaitEmpty waits until the queue holds nothing of the run.
func awaitEmpty(t *testing.T, q queue.Queue) {
	t.Helper()
	// Other processes empty it, and nobody tells us when.
	for ; ; time.Sleep(20 * time.Millisecond) {
		if st, err := q.Stats(t.Context(), "lab"); err == nil && st.Live() == 0 {
			return
		}
	}
}
