// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
)

// A hand-over comes before the upload of what there is: the next worker has the trial while
// the first one still has its bundle. The end is written ahead, so that the attempt isn't
// taken for one that died.
func TestHandOverComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "retry: {max_attempts: 1}\n", holds("a"))
		first := l.machine()
		uploading, goOn := make(chan struct{}), make(chan struct{})
		first.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Times: 1, Do: bundletest.Pass(), Hit: func(bundletest.Op, string) {
			close(uploading)
			<-goOn
		}})
		first.start()
		l.await("agent")
		start := time.Now()
		first.Hurry()
		<-uploading
		if a := l.attempts(0); a[0].End == nil || a[0].End.Charged {
			t.Errorf("end %+v; want one that is not charged", a[0].End)
		}
		second := l.machine().start()
		l.finish(second)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("the next worker was done after %s", took)
		}
		if c := l.commit(0); c.Attempt != 2 {
			t.Errorf("commit of attempt %d", c.Attempt)
		}
		close(goOn)
		first.end()
		l.stoppedAttempt(0, 1, "worker is stopping")
	})
}

// Who hands over while the store is away keeps the bundle, and the next process sends it.
func TestHandOverWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", holds("a"))
		first := l.machine()
		first.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Do: bundletest.Fail(bundle.ErrUnavailable)})
		first.start()
		l.await("agent")
		first.Hurry()
		first.end()
		second := l.machine(inDir(first.dir)).start()
		l.finish(second)
		if !l.sealed(l.rows[0], 1) {
			t.Error("the first attempt's bundle is not in the store")
		}
		l.commit(0)
	})
}
