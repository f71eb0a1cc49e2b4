// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/memqueue"
)

// brokenQueue opens runs and takes no jobs.
type brokenQueue struct{ *memqueue.Queue }

func (brokenQueue) Publish(context.Context, string, []queue.Job) (queue.Published, error) {
	return queue.Published{}, queue.ErrUnreachable
}

func TestFindUnfinished(t *testing.T) {
	l := newLab(t, "a", "b")
	synctest.Test(t, func(t *testing.T) {
		// A directory without run.yaml, and one that nobody can read, are passed over.
		for key, body := range map[string]string{"runs/odd/control/x": "x", "runs/newer/run.yaml": "schema_version: 9\n"} {
			if err := l.store.Put(t.Context(), key, strings.NewReader(body), -1); err != nil {
				t.Fatal(err)
			}
		}
		submit := func(id, extra string) *producer.Submission {
			d, err := producer.NewDraft(t.Context(), l.load(extra)[0], l.options(), l.dir)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			sub, err := l.producer().Submit(t.Context(), d, producer.Options{RunID: id})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // of the bubble
			return sub
		}
		find := func(digest string, except ...string) string {
			rec, err := producer.FindUnfinished(t.Context(), l.store, digest, except)
			if err != nil {
				t.Fatal(err)
			}
			if rec == nil {
				return ""
			}
			return rec.RunID
		}
		if got := find("any"); got != "" {
			t.Errorf("found %q in a store without runs", got)
		}
		first := submit("z-first", "")
		digest := first.Record.Plan.Digest
		submit("a-second", "")
		submit("x-other", "repeats: 2\n")
		if got := find(digest); got != "a-second" {
			t.Errorf("found %q, want the newest", got)
		}
		if got := find(digest, "a-second"); got != "z-first" {
			t.Errorf("found %q besides the newest", got)
		}
		done := func(id string, n int) {
			rec := first.Record
			rec.RunID = id
			rows, _ := l.planned(rec)
			l.commit(id, rows[:n]...)
		}
		done("a-second", 1)
		if got := find(digest); got != "a-second" {
			t.Errorf("found %q, want the one that is half done", got)
		}
		done("a-second", 2)
		if got := find(digest); got != "z-first" {
			t.Errorf("found %q, want the one that is not done", got)
		}
		done("z-first", 2)
		if got := find(digest); got != "" {
			t.Errorf("found %q although all are done", got)
		}
	})
}

// Trouble with the store is not "nothing to continue": that would begin a run anew.
func TestFindUnfinishedFails(t *testing.T) {
	for _, op := range []bundletest.Op{bundletest.OpList, bundletest.OpGet} {
		l := newLab(t, "a")
		sub := l.submit(l.draft(""), "r1")
		l.store.Inject(bundletest.Fault{Op: op, Do: bundletest.Fail(bundle.ErrUnavailable)})
		if _, err := producer.FindUnfinished(t.Context(), l.store, sub.Record.Plan.Digest, nil); !errors.Is(err, bundle.ErrUnavailable) {
			t.Errorf("%s: got %v", op, err)
		}
	}
}
