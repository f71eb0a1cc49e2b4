// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/memqueue"
)

// countingQueue counts jobs and forgets them.
type countingQueue struct {
	*memqueue.Queue
	jobs int
}

func (q *countingQueue) Publish(_ context.Context, _ string, jobs []queue.Job) (queue.Published, error) {
	q.jobs += len(jobs)
	return queue.Published{Stored: len(jobs)}, nil
}

// large is a pack of n rows that differ in the one with this number only.
func (l *lab) large(n, odd int) {
	l.t.Helper()
	f, err := os.Create(filepath.Join(l.dir, "pack", "rows.jsonl"))
	if err != nil {
		l.t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range n {
		id := fmt.Sprintf("a-task-with-a-name-of-some-length/%06d", i)
		if i == odd {
			id += "x"
		}
		fmt.Fprintf(w, "{\"id\": %q, \"prompt\": \"some text that nobody keeps\"}\n", id)
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		l.t.Fatal(err)
	}
}

func liveHeap() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Memory does not grow with the number of rows: keeping them would take more than this.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 200,000 rows twice")
	}
	const rows, bound = 200_000, 45 << 20
	l := newLab(t)
	l.large(rows, -1)
	store, err := dirstore.Open(filepath.Join(l.dir, "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	before := liveHeap()
	d := l.draft("")
	if now := liveHeap(); now > before+bound {
		t.Errorf("a draft of %d rows keeps %d MiB", rows, (now-before)>>20)
	}
	q := &countingQueue{Queue: l.queue}
	most := before
	p := producer.Producer{
		Store: store, StoreUUID: storeUUID, Queue: q, Log: zerolog.Nop(),
		OnProgress: func(producer.Progress) { most = max(most, liveHeap()) },
	}
	sub, err := p.Submit(t.Context(), d, producer.Options{RunID: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	if q.jobs != rows || sub.Planned != rows || sub.Record.Plan.Parts < rows/5000 {
		t.Errorf("%d jobs, %+v, %d parts", q.jobs, sub.Progress, sub.Record.Plan.Parts)
	}
	if most > before+bound {
		t.Errorf("submitting %d rows took %d MiB", rows, (most-before)>>20)
	}
}

// A change far down is noticed when its part is due; what was stored before is right.
func TestLateChange(t *testing.T) {
	const rows = 12_000
	l := newLab(t)
	l.large(rows, -1)
	d := l.draft("")
	l.large(rows, 11_000)
	q := &countingQueue{Queue: l.queue}
	p := l.producer()
	p.Queue = q
	if _, err := p.Submit(t.Context(), d, producer.Options{RunID: "r1"}); !errors.Is(err, producer.ErrTasksChanged) {
		t.Fatalf("got %v", err)
	}
	parts := len(l.objects(bundle.Keys{Run: "r1"}.Prefix() + "plan/"))
	if parts == 0 || parts >= d.Plan.Parts || q.jobs > 11_000 || q.jobs == 0 {
		t.Errorf("%d of %d parts and %d jobs were stored", parts, d.Plan.Parts, q.jobs)
	}
	l.large(rows, -1)
	sub, err := p.Submit(t.Context(), d, producer.Options{RunID: "r1"})
	if err != nil || sub.Planned != rows {
		t.Errorf("%+v, %v", sub, err)
	}
}
