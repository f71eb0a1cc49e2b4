// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

// rig is everything that tidemill run puts together, without its command line.
type rig struct {
	dir   string
	data  *local.Dir
	store bundle.Store
	id    bundle.StoreRecord
	queue *natsqueue.Queue
	rt    runtime.Runtime
}

// newRig puts it on a real disk: TIDEMILL_BENCH_DIR, else the system's directory for
// temporary files.
func newRig(b *testing.B) *rig {
	b.Helper()
	r := &rig{dir: benchDir(b)}
	var err error
	if r.data, err = local.Acquire(filepath.Join(r.dir, "results"), "benchmark"); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.data.Release() })
	if r.store, err = dirstore.Open(r.data.Store(), dirstore.Options{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.store.Close() })
	if r.id, err = bundle.OpenIdentity(b.Context(), r.store); err != nil {
		b.Fatal(err)
	}
	srv, err := embedded.Start(b.Context(), embedded.Config{Dir: r.data.Queue(), RelaxedSync: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(srv.Shutdown)
	nc, err := srv.Connect()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	if r.queue, err = natsqueue.Open(b.Context(), nc, natsqueue.Config{Store: r.id.StoreUUID, LeaseSettle: -1}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.queue.Close() })
	return r
}

func benchDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp(os.Getenv("TIDEMILL_BENCH_DIR"), "tidemill-bench-*")
	if err != nil {
		b.Fatal(err)
	}
	benchDirs = append(benchDirs, dir)
	return dir
}

// runFile writes a run of n trials whose agent and grader are one sh -c each.
func (r *rig) runFile(b *testing.B, n int, iso isolation) string {
	b.Helper()
	pack := filepath.Join(r.dir, "pack")
	if err := os.MkdirAll(pack, 0o755); err != nil {
		b.Fatal(err)
	}
	var rows strings.Builder
	for i := range n {
		fmt.Fprintf(&rows, "{\"id\":\"task-%06d\",\"prompt\":\"nothing\"}\n", i)
	}
	file := filepath.Join(r.dir, "run.yaml")
	for name, body := range map[string]string{
		filepath.Join(pack, "rows.jsonl"): rows.String(),
		filepath.Join(pack, "pack.yaml"): `version: 1
kind: dataset
dataset: {path: rows.jsonl, id_field: id}
agent_fields: [prompt]
instruction: "{{.prompt}}"
grade: {command: [sh, -c, 'echo 1 >"$TIDEMILL_LOGS_DIR/verifier/reward.txt"']}
`,
		file: `version: 1
name: bench
packs: [./pack]
agent: {name: bench, command: [sh, -c, ':']}
runtime: {type: subprocess, options: {isolation: ` + iso.option + `}}
network_policy: ` + string(iso.policy) + `
`,
	} {
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return file
}

// submit enqueues the trials of a run file.
func (r *rig) submit(b *testing.B, file string) manifest.RunRecord {
	b.Helper()
	runs, err := manifest.Load(file, manifest.LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	d, err := producer.NewDraft(b.Context(), runs[0], manifest.LoadOptions{}, r.dir)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	p := producer.Producer{Store: r.store, StoreUUID: r.id.StoreUUID, Queue: r.queue, Log: zerolog.Nop()}
	sub, err := p.Submit(b.Context(), d, producer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return sub.Record
}

// work runs n trials with a worker of its own and returns when the last is committed.
func (r *rig) work(b *testing.B, n, slots int) {
	b.Helper()
	if r.rt == nil {
		rt, err := subprocess.New(subprocess.Config{Root: r.data.Work(), Store: r.id.StoreUUID})
		if err != nil {
			b.Fatal(err)
		}
		r.rt = rt
		b.Cleanup(func() { rt.Close() })
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	events := make(chan worker.Event, n)
	w, err := worker.New(worker.Config{
		Slots: slots, Store: r.store, StoreUUID: r.id.StoreUUID, Queue: r.queue,
		Runtimes: map[string]runtime.Runtime{r.rt.Type(): r.rt}, Dir: r.data.Worker(),
		Log: zerolog.New(os.Stderr).Level(zerolog.WarnLevel),
		OnEvent: func(e worker.Event) {
			if e.Kind == worker.Committed {
				events <- e
			}
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for range n {
		if e := <-events; !e.Grade.BinaryPass {
			b.Errorf("%s ended with %s: %s", e.TaskID, e.Outcome.TerminationReason, e.Outcome.Detail)
		}
	}
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}
