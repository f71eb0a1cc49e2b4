// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/memqueue"
)

func TestMain(m *testing.M) {
	// Makes what the package shares outside of any bubble of time.
	_, _ = bundle.DecodePlanPart(nil)
	goleak.VerifyTestMain(m)
}

const storeUUID = "11111111-2222-4333-8444-555555555555"

const packFile = `version: 1
kind: dataset
dataset: {path: rows.jsonl, id_field: id}
instruction: do it
grade: {command: [grade]}
`

const runFile = `version: 1
name: lab
packs: [pack]
agent: {name: script, command: [run]}
runtime: {type: scripted}
network_policy: no_internet
`

// lab is a directory with a run file and packs, and where they are submitted to.
type lab struct {
	t     *testing.T
	dir   string
	store *bundletest.Faulty
	queue *memqueue.Queue
	env   map[string]string
}

func newLab(t *testing.T, tasks ...string) *lab {
	t.Helper()
	q, err := memqueue.New(memqueue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, dir: t.TempDir(), store: bundletest.NewFaulty(memstore.New()), queue: q}
	l.write("run.yaml", runFile)
	l.pack("pack", tasks...)
	return l
}

func (l *lab) write(name, body string) {
	l.t.Helper()
	file := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(body), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) pack(name string, tasks ...string) {
	l.t.Helper()
	l.write(name+"/pack.yaml", packFile)
	l.rows(name, tasks...)
}

func (l *lab) rows(pack string, tasks ...string) {
	l.t.Helper()
	var b strings.Builder
	for _, id := range tasks {
		fmt.Fprintf(&b, "{\"id\": %q}\n", id)
	}
	l.write(pack+"/rows.jsonl", b.String())
}

// numbered are n task ids.
func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("t/%d", i)
	}
	return ids
}

func (l *lab) options() manifest.LoadOptions {
	return manifest.LoadOptions{LookupEnv: func(name string) (string, bool) {
		v, ok := l.env[name]
		return v, ok
	}}
}

// load reads the run file, with more at its end.
func (l *lab) load(extra string) []*manifest.Run {
	l.t.Helper()
	body, err := os.ReadFile(filepath.Join(l.dir, "run.yaml"))
	if err != nil {
		l.t.Fatal(err)
	}
	runs, err := manifest.Parse(filepath.Join(l.dir, "run.yaml"), append(body, extra...), l.options())
	if err != nil {
		l.t.Fatal(err)
	}
	return runs
}

func (l *lab) tryDraft(extra string) (*producer.Draft, error) {
	l.t.Helper()
	d, err := producer.NewDraft(l.t.Context(), l.load(extra)[0], l.options(), l.dir)
	if err == nil {
		l.t.Cleanup(func() {
			if err := d.Close(); err != nil {
				l.t.Error(err)
			}
		})
	}
	return d, err
}

func (l *lab) draft(extra string) *producer.Draft {
	l.t.Helper()
	d, err := l.tryDraft(extra)
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}

func (l *lab) producer() *producer.Producer {
	return &producer.Producer{Store: l.store, StoreUUID: storeUUID, Queue: l.queue, Log: zerolog.Nop(), Version: "v1"}
}

func (l *lab) submit(d *producer.Draft, id string) *producer.Submission {
	l.t.Helper()
	sub, err := l.producer().Submit(l.t.Context(), d, producer.Options{RunID: id})
	if err != nil {
		l.t.Fatal(err)
	}
	return sub
}

// planned reads the whole plan of a run from the store.
func (l *lab) planned(rec manifest.RunRecord) (rows []bundle.PlanRow, refs map[string]bundle.PlanRef) {
	l.t.Helper()
	refs = map[string]bundle.PlanRef{}
	for part := range rec.Plan.Parts {
		got, err := bundle.ReadPlanPart(l.t.Context(), l.store, bundle.Keys{Run: rec.RunID}, part)
		if err != nil {
			l.t.Fatal(err)
		}
		for i, row := range got {
			refs[row.TrialID] = bundle.PlanRef{Part: part, Row: i}
		}
		rows = append(rows, got...)
	}
	return rows, refs
}

// live is the number of jobs that wait.
func (l *lab) live(run string) int {
	l.t.Helper()
	st, err := l.queue.Stats(l.t.Context(), run)
	if err != nil {
		l.t.Fatal(err)
	}
	return st.Live()
}

// take leases n jobs of the scripted class and answers each with Done.
func (l *lab) take(n int) []queue.Job {
	l.t.Helper()
	var jobs []queue.Job
	for range n {
		ctx, cancel := context.WithCancel(l.t.Context())
		lease, err := l.queue.Lease(ctx, queue.Request{Worker: "w", Offers: []string{"scripted"}, Nonce: bundle.NewNonce()})
		cancel()
		if err != nil {
			l.t.Fatal(err)
		}
		if err := lease.Done(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
		jobs = append(jobs, lease.Job())
	}
	return jobs
}

// checkJobs checks that jobs point at the rows of their trials, and returns the trials.
func (l *lab) checkJobs(rec manifest.RunRecord, jobs []queue.Job) []string {
	l.t.Helper()
	_, refs := l.planned(rec)
	trials := map[string]bool{}
	for _, j := range jobs {
		ref, err := dispatch.ParseBody(j.Body)
		if want, ok := refs[j.Trial]; err != nil || !ok || ref != want {
			l.t.Errorf("job %s points at %+v, its row is %+v (%v, %v)", j.ID, ref, want, ok, err)
		}
		if trials[j.Trial] {
			l.t.Errorf("trial %s came twice", j.Trial)
		}
		trials[j.Trial] = true
	}
	return slices.Sorted(maps.Keys(trials))
}

func (l *lab) commit(run string, rows ...bundle.PlanRow) {
	l.t.Helper()
	for _, row := range rows {
		c := bundle.Commit{TrialID: row.TrialID, TaskID: row.TaskID, TrialIndex: row.TrialIndex, Epoch: 1, Attempt: 1, Nonce: "n"}
		if _, _, err := bundle.WriteCommit(l.t.Context(), l.store, bundle.Keys{Run: run}, c); err != nil {
			l.t.Fatal(err)
		}
	}
}

// objects are the keys and contents below a prefix.
func (l *lab) objects(prefix string) map[string]string {
	l.t.Helper()
	out := map[string]string{}
	for info, err := range l.store.List(l.t.Context(), prefix) {
		if err != nil {
			l.t.Fatal(err)
		}
		r, _, err := l.store.Store.Get(l.t.Context(), info.Key)
		if err != nil {
			l.t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			l.t.Fatal(err)
		}
		out[info.Key] = string(body)
	}
	return out
}
