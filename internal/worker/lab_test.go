// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/memqueue"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/scripted"
)

const storeUUID = "11111111-2222-4333-8444-555555555555"

// task is a row of the lab's pack: instructions for agent and grader, one a line.
type task struct{ id, agent, grade string }

// passes is a task that does its work at once.
func passes(id string) task { return task{id: id, agent: "print hello"} }

// lab is a store, a queue and a provider of sandboxes, with a run in them.
type lab struct {
	t        testing.TB
	store    bundle.Store       // the real one
	connect  func() queue.Queue // as another process would
	queue    queue.Queue        // the producer's
	provider *scripted.Provider
	control  *scripted.Control
	keys     bundle.Keys
	rec      manifest.RunRecord
	rows     []bundle.PlanRow
	events   *events
	n        int // workers made
}

// newLab submits a run of these tasks; extra is more of the run file.
func newLab(t testing.TB, extra string, tasks ...task) *lab {
	t.Helper()
	broker, err := memqueue.NewBroker(memqueue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return newLabOn(t, memstore.New(), func() queue.Queue { return broker.Open() }, extra, tasks...)
}

// newLabOn is newLab on a store and a queue of the test's choice.
func newLabOn(t testing.TB, store bundle.Store, connect func() queue.Queue, extra string, tasks ...task) *lab {
	t.Helper()
	l := bareLab(t, store, connect)
	l.submit(extra, tasks)
	return l
}

func bareLab(t testing.TB, store bundle.Store, connect func() queue.Queue) *lab {
	return &lab{
		t: t, store: store, connect: connect, queue: connect(),
		provider: &scripted.Provider{}, control: &scripted.Control{}, events: newEvents(),
	}
}

// newLabBy is newLab with another run.
func newLabBy(t testing.TB, submit func(*lab)) *lab {
	t.Helper()
	broker, err := memqueue.NewBroker(memqueue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := bareLab(t, memstore.New(), func() queue.Queue { return broker.Open() })
	submit(l)
	return l
}

func (l *lab) submit(extra string, tasks []task) {
	l.t.Helper()
	dir := l.t.TempDir()
	var rows strings.Builder
	for _, tk := range tasks {
		if tk.grade == "" {
			tk.grade = "write verifier/reward.txt 1"
		}
		line, err := json.Marshal(map[string]string{"id": tk.id, "agent": tk.agent, "grade": tk.grade})
		if err != nil {
			l.t.Fatal(err)
		}
		rows.Write(append(line, '\n'))
	}
	write(l.t, filepath.Join(dir, "pack", "rows.jsonl"), rows.String())
	write(l.t, filepath.Join(dir, "pack", "pack.yaml"), `version: 1
kind: dataset
name: lab
dataset: {path: rows.jsonl, id_field: id}
agent_fields: [agent]
instruction: do it
grade: {command: ["run tests/tidemill-row.json#grade"]}
`)
	l.plan(dir, `version: 1
name: lab
packs: [pack]
agent: {name: script, command: ["run input/row.json#agent"]}
runtime: {type: scripted}
network_policy: no_internet
`+extra)
}

// plan submits the run file of a directory.
func (l *lab) plan(dir, text string) {
	l.t.Helper()
	runs, err := manifest.Parse(filepath.Join(dir, "run.yaml"), []byte(text), manifest.LoadOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	d, err := producer.NewDraft(l.t.Context(), runs[0], manifest.LoadOptions{}, dir)
	if err != nil {
		l.t.Fatal(err)
	}
	defer d.Close()
	p := producer.Producer{Store: l.store, StoreUUID: storeUUID, Queue: l.queue, Log: zerolog.Nop()}
	sub, err := p.Submit(l.t.Context(), d, producer.Options{RunID: "lab"})
	if err != nil {
		l.t.Fatal(err)
	}
	l.rec, l.keys = sub.Record, bundle.Keys{Run: "lab"}
	for part := range sub.Record.Plan.Parts {
		rows, err := bundle.ReadPlanPart(l.t.Context(), l.store, l.keys, part)
		if err != nil {
			l.t.Fatal(err)
		}
		l.rows = append(l.rows, rows...)
	}
}

func write(t testing.TB, name, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
}

// machine is a worker process: its view of store and queue, and its runtime.
type machine struct {
	*worker.Worker
	l     *lab
	store *bundletest.Faulty
	queue *faultyQueue
	rt    *hooked
	dir   string
	stop  context.CancelFunc
	done  chan struct{}
	err   error // of Run, once it is done
}

// machine makes a worker that isn't running yet.
func (l *lab) machine(change ...func(*worker.Config)) *machine {
	l.t.Helper()
	l.n++
	m := &machine{
		l: l, store: bundletest.NewFaulty(l.store), queue: &faultyQueue{Queue: l.connect()}, dir: l.t.TempDir(),
		rt: &hooked{Runtime: scripted.New(scripted.Config{Provider: l.provider, Control: l.control})},
	}
	c := worker.Config{
		Name: fmt.Sprintf("w%d", l.n), Store: m.store, StoreUUID: storeUUID, Queue: m.queue,
		Runtimes: map[string]runtime.Runtime{scripted.Type: m.rt}, Dir: m.dir,
		Log: zerolog.New(zerolog.NewTestWriter(l.t)).Level(zerolog.WarnLevel), OnEvent: l.events.add,
	}
	for _, f := range change {
		f(&c)
	}
	w, err := worker.New(c)
	if err != nil {
		l.t.Fatal(err)
	}
	m.Worker = w
	return m
}

// start runs the worker until the test ends it.
func (m *machine) start() *machine {
	ctx, cancel := context.WithCancel(m.l.t.Context())
	m.stop = cancel
	m.done = make(chan struct{})
	go func() {
		defer close(m.done)
		m.err = m.Run(ctx)
	}()
	return m
}

// end stops the worker and waits for it.
func (m *machine) end() {
	m.l.t.Helper()
	m.stop()
	<-m.done
	<-m.Stopped()
	if m.err != nil {
		m.l.t.Errorf("Run: %v", m.err)
	}
	if left, _ := os.ReadDir(filepath.Join(m.dir, "spool")); len(left) > 0 {
		m.l.t.Errorf("the spool holds %s", left[0].Name())
	}
}

// finish waits until the queue holds nothing of the run, and ends the workers.
func (l *lab) finish(ms ...*machine) {
	l.t.Helper()
	l.events.until(func([]worker.Event) bool {
		st, err := l.queue.Stats(l.t.Context(), "lab")
		return err != nil || st.Live() == 0
	})
	for _, m := range ms {
		m.end()
	}
	if left := l.provider.Left(); len(left) > 0 {
		l.t.Errorf("left behind: %s", strings.Join(left, ", "))
	}
}

// commits returns the commits of the run, by trial id.
func (l *lab) commits() map[string]bundle.Commit {
	l.t.Helper()
	out := map[string]bundle.Commit{}
	for info, err := range l.store.List(l.t.Context(), l.keys.Commits()) {
		if err != nil {
			l.t.Fatal(err)
		}
		c, err := bundle.ReadRecord[bundle.Commit](l.t.Context(), l.store, info.Key)
		if err != nil {
			l.t.Fatal(err)
		}
		if _, twice := out[c.TrialID]; twice {
			l.t.Errorf("two commits of trial %s", c.TrialID)
		}
		out[c.TrialID] = c
	}
	return out
}

// commit returns the only commit that there must be of row n, with its bundle verified.
func (l *lab) commit(n int) bundle.Commit {
	l.t.Helper()
	c, ok := l.commits()[l.rows[n].TrialID]
	if !ok {
		l.t.Fatalf("no commit of %s", l.rows[n].TaskID)
	}
	ix, err := bundle.Verify(l.t.Context(), l.store, l.keys.AttemptFiles(c.TaskID, c.TrialIndex, c.Attempt))
	if err != nil || ix.SHA256 != c.IndexSHA256 {
		l.t.Errorf("bundle of attempt %d of %s: %v, index %s, committed %s", c.Attempt, c.TaskID, err, ix.SHA256, c.IndexSHA256)
	}
	return c
}

// attempts returns those of row n, and checks that numbers never repeat.
func (l *lab) attempts(n int) []bundle.Attempt {
	l.t.Helper()
	as, err := bundle.ListAttempts(l.t.Context(), l.store, l.keys, l.rows[n].TrialID)
	if err != nil {
		l.t.Fatal(err)
	}
	nonces := map[string]bool{}
	for i, a := range as {
		if a.Claim.Attempt != i+1 || nonces[a.Claim.Nonce] {
			l.t.Errorf("attempt %d of %s: %+v", i+1, l.rows[n].TaskID, a.Claim)
		}
		nonces[a.Claim.Nonce] = true
	}
	return as
}

// sealed reports whether an attempt's bundle is in the store, whole.
func (l *lab) sealed(row bundle.PlanRow, attempt int) bool {
	_, err := bundle.Verify(l.t.Context(), l.store, l.keys.AttemptFiles(row.TaskID, row.TrialIndex, attempt))
	return err == nil
}

// indexed reports whether an attempt has its index, which is written when all else is.
func (l *lab) indexed(row bundle.PlanRow, attempt int) bool {
	r, _, err := l.store.Get(l.t.Context(), l.keys.AttemptFiles(row.TaskID, row.TrialIndex, attempt)+bundle.IndexName)
	if err == nil {
		_ = r.Close()
	}
	return err == nil
}

func (l *lab) read(key string) string {
	l.t.Helper()
	r, _, err := l.store.Get(l.t.Context(), key)
	if err != nil {
		l.t.Fatal(err)
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(body)
}

// events are what workers told.
type events struct {
	mu      sync.Mutex
	list    []worker.Event
	changed chan struct{}
}

func newEvents() *events { return &events{changed: make(chan struct{})} }

func (e *events) add(ev worker.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
	close(e.changed)
	e.changed = make(chan struct{})
}

// until waits, from event to event, for ok.
func (e *events) until(ok func([]worker.Event) bool) {
	for {
		e.mu.Lock()
		list, changed := e.list[:len(e.list):len(e.list)], e.changed
		e.mu.Unlock()
		if ok(list) {
			return
		}
		<-changed
	}
}

// kind waits for the nth event of a kind and returns it.
func (e *events) kind(kind worker.EventKind, n int) (found worker.Event) {
	e.until(func(list []worker.Event) bool {
		seen := 0
		for _, ev := range list {
			if ev.Kind == kind {
				if seen++; seen == n {
					found = ev
					return true
				}
			}
		}
		return false
	})
	return found
}

func (e *events) count(kind worker.EventKind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.list {
		if ev.Kind == kind {
			n++
		}
	}
	return n
}

// hooked is a runtime that a test may interfere with.
type hooked struct {
	*scripted.Runtime
	mu       sync.Mutex
	prepared int
	closed   int
	prepare  func(context.Context) error
	open     func(context.Context, *runtime.Spec) error
	exec     func(runtime.Command)
}

type hookedEnv struct {
	runtime.Environment
	rt *hooked
}

type hookedBox struct {
	runtime.Sandbox
	rt *hooked
}

func (h *hooked) Prepare(ctx context.Context, spec runtime.RunSpec) (runtime.Environment, error) {
	h.mu.Lock()
	h.prepared++
	h.mu.Unlock()
	if h.prepare != nil {
		if err := h.prepare(ctx); err != nil {
			return nil, err
		}
	}
	env, err := h.Runtime.Prepare(ctx, spec)
	return &hookedEnv{env, h}, err
}

func (e *hookedEnv) Open(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	if e.rt.open != nil {
		if err := e.rt.open(ctx, &spec); err != nil {
			return nil, err
		}
	}
	box, err := e.Environment.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &hookedBox{box, e.rt}, nil
}

func (b *hookedBox) Describe() runtime.Description { return b.Sandbox.(runtime.Described).Describe() }

func (e *hookedEnv) Close(ctx context.Context) error {
	e.rt.mu.Lock()
	e.rt.closed++
	e.rt.mu.Unlock()
	return e.Environment.Close(ctx)
}

func (b *hookedBox) Exec(ctx context.Context, cmd runtime.Command) (runtime.Exit, error) {
	if b.rt.exec != nil {
		b.rt.exec(cmd)
	}
	return b.Sandbox.Exec(ctx, cmd)
}

// script makes Open play instructions for the sandboxes of tasks.
func script(of func(runtime.Labels) string) func(context.Context, *runtime.Spec) error {
	return func(_ context.Context, spec *runtime.Spec) error {
		env := map[string]string{scripted.OpenVar: of(spec.Labels)}
		for k, v := range spec.Env {
			env[k] = v
		}
		spec.Env = env
		return nil
	}
}

// faultyQueue is a worker's queue that may be out of reach, and that counts answers.
type faultyQueue struct {
	queue.Queue
	deaf    bool // leases don't hear that they are revoked; set it before the start
	mu      sync.Mutex
	away    bool
	answers map[string]int
}

func (q *faultyQueue) setAway(away bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.away = away
}

// call counts a call and returns what befalls it: who is away doesn't answer.
func (q *faultyQueue) call(ctx context.Context, name string) error {
	q.mu.Lock()
	if q.answers == nil {
		q.answers = map[string]int{}
	}
	q.answers[name]++
	away := q.away
	q.mu.Unlock()
	if away {
		<-ctx.Done()
		return fmt.Errorf("%s: %w", name, queue.ErrUnreachable)
	}
	return nil
}

func (q *faultyQueue) said(name string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.answers[name]
}

func (q *faultyQueue) Lease(ctx context.Context, req queue.Request) (queue.Lease, error) {
	l, err := q.Queue.Lease(ctx, req)
	if err != nil {
		return nil, err
	}
	return &faultyLease{Lease: l, q: q}, nil
}
