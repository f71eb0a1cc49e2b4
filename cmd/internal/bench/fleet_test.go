// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/scripted"
)

var (
	fleetEnqueue = flag.Int("fleet.enqueue", 10_000, "trials that BenchmarkFleet enqueues")
	fleetDrain   = flag.Int("fleet.drain", 10_000, "trials that BenchmarkFleet runs of them")
	fleetWorkers = flag.Int("fleet.workers", 20, "workers of BenchmarkFleet")
	fleetSlots   = flag.Int("fleet.slots", 10, "slots of each")
	fleetSync    = flag.Bool("fleet.sync", false, "whether the server of BenchmarkFleet syncs each write; a NATS server that is not told to doesn't")
	fleetStore   = flag.String("fleet.store", "mem", "store of BenchmarkFleet: mem or dir")
)

// BenchmarkFleet enqueues many trials on one NATS server and has a fleet run some of them,
// in one process: each worker has connections of its own, and its sandboxes are scripted, so
// that what is measured is all that Tidemill does around a trial. enqueued/s is the whole
// submission; trials/s is from the first lease to the last commit; queue-MB is what the
// process had resident when all was enqueued and peak-MB at most, server, producer and a
// store in memory among it. An iteration is a fleet.
func BenchmarkFleet(b *testing.B) {
	name := fmt.Sprintf("enqueue=%d/drain=%d/slots=%dx%d/sync=%v/store=%s", *fleetEnqueue, *fleetDrain, *fleetWorkers, *fleetSlots, *fleetSync, *fleetStore)
	b.Run(name, func(b *testing.B) {
		var puts, rates, queued, peaks []float64
		for range b.N {
			f := newFleet(b)
			puts = append(puts, float64(*fleetEnqueue)/seconds(func() { f.enqueue(b) }))
			goruntime.GC()
			queued = append(queued, resident(b, "VmRSS:"))
			rates = append(rates, float64(*fleetDrain)/seconds(func() { f.drain(b) }))
			peaks = append(peaks, resident(b, "VmHWM:"))
			f.close(b)
		}
		b.ReportMetric(median(puts), "enqueued/s")
		b.ReportMetric(median(rates), "trials/s")
		b.ReportMetric(median(queued), "queue-MB")
		b.ReportMetric(median(peaks), "peak-MB")
	})
}

// fleet is a server, a store, and the queue of a producer.
type fleet struct {
	dir   string
	srv   *embedded.Server
	store bundle.Store
	id    bundle.StoreRecord
	queue *natsqueue.Queue
}

func newFleet(b *testing.B) *fleet {
	b.Helper()
	f := &fleet{dir: benchDir(b), store: memstore.New()}
	var err error
	if *fleetStore == "dir" {
		if f.store, err = dirstore.Open(filepath.Join(f.dir, "store"), dirstore.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	if f.id, err = bundle.OpenIdentity(b.Context(), f.store); err != nil {
		b.Fatal(err)
	}
	f.srv, err = embedded.Start(b.Context(), embedded.Config{
		Dir: filepath.Join(f.dir, "queue"), Listen: "127.0.0.1:0", RelaxedSync: !*fleetSync,
	})
	if err != nil {
		b.Fatal(err)
	}
	f.queue = f.dial(b)
	return f
}

func (f *fleet) dial(b *testing.B) *natsqueue.Queue {
	b.Helper()
	q, err := natsqueue.Dial(b.Context(), f.srv.ClientURL(), natsqueue.Config{Store: f.id.StoreUUID, LeaseSettle: -1})
	if err != nil {
		b.Fatal(err)
	}
	return q
}

func (f *fleet) close(b *testing.B) {
	b.Helper()
	if err := f.queue.Close(); err != nil {
		b.Error(err)
	}
	f.srv.Shutdown()
	if err := f.store.Close(); err != nil {
		b.Error(err)
	}
	if err := os.RemoveAll(f.dir); err != nil {
		b.Error(err)
	}
}

// enqueue submits a run of scripted tasks.
func (f *fleet) enqueue(b *testing.B) {
	b.Helper()
	var rows strings.Builder
	for i := range *fleetEnqueue {
		fmt.Fprintf(&rows, "{\"id\":\"task-%07d\",\"prompt\":\"nothing\"}\n", i)
	}
	file := filepath.Join(f.dir, "run.yaml")
	for name, body := range map[string]string{
		filepath.Join(f.dir, "pack", "rows.jsonl"): rows.String(),
		filepath.Join(f.dir, "pack", "pack.yaml"): `version: 1
kind: dataset
dataset: {path: rows.jsonl, id_field: id}
agent_fields: [prompt]
instruction: "{{.prompt}}"
grade: {command: ["write verifier/reward.txt 1"]}
`,
		file: `version: 1
name: fleet
packs: [./pack]
agent: {name: scripted, command: ["print hello"]}
runtime: {type: scripted}
network_policy: no_internet
`,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	runs, err := manifest.Load(file, manifest.LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	d, err := producer.NewDraft(b.Context(), runs[0], manifest.LoadOptions{}, f.dir)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	p := producer.Producer{Store: f.store, StoreUUID: f.id.StoreUUID, Queue: f.queue, Log: zerolog.Nop()}
	sub, err := p.Submit(b.Context(), d, producer.Options{RunID: "fleet"})
	if err != nil || sub.Enqueued != *fleetEnqueue {
		b.Fatalf("%+v, %v", sub, err)
	}
}

// drain starts the fleet and returns when enough is committed. What goes on then is handed
// over, and is not part of what was asked for.
func (f *fleet) drain(b *testing.B) {
	b.Helper()
	ctx, enough := context.WithCancel(b.Context())
	defer enough()
	var done atomic.Int64
	var all sync.WaitGroup
	for n := range *fleetWorkers {
		q := f.dial(b)
		rt := scripted.New(scripted.Config{})
		w, err := worker.New(worker.Config{
			Slots: *fleetSlots, Store: f.store, StoreUUID: f.id.StoreUUID, Queue: q, PoisonAfter: 3,
			Runtimes: map[string]runtime.Runtime{rt.Type(): rt}, Dir: filepath.Join(f.dir, "worker-"+strconv.Itoa(n)),
			Log: zerolog.New(os.Stderr).Level(zerolog.WarnLevel), DrainTimeout: time.Minute,
			OnEvent: func(e worker.Event) {
				if e.Kind == worker.Committed && done.Add(1) == int64(*fleetDrain) {
					enough()
				}
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		all.Go(func() {
			if err := w.Run(ctx); err != nil {
				b.Error(err)
			}
			if err := q.Close(); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	if n := done.Load(); n < int64(*fleetDrain) {
		b.Errorf("%d trials committed, want %d", n, *fleetDrain)
	}
}

// resident is a figure of this process's memory, in MB, 0 where the system doesn't tell.
func resident(b *testing.B, field string) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != field {
			continue
		}
		kib, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		return kib * 1024 / 1e6
	}
	return 0
}
