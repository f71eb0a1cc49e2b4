// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/worker"
)

// inDir makes a worker the next one in the directory of another.
func inDir(dir string) func(*worker.Config) { return func(c *worker.Config) { c.Dir = dir } }

// unsentBundle runs a trial whose first bundle the store did not take, and returns the
// directory of that worker, which has ended.
func unsentBundle(l *lab) string {
	l.t.Helper()
	m := l.machine(func(c *worker.Config) { c.StoreRetry = time.Second })
	back := m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Key: "/trials/", Do: bundletest.Fail(bundle.ErrUnavailable)})
	m.start()
	l.events.kind(worker.Retrying, 1)
	back()
	l.finish(m)
	if s := m.Status(); s.Unsent != 1 {
		l.t.Fatalf("status %+v, want one bundle that is kept here only", s)
	}
	return m.dir
}

func note(t *testing.T, l *lab, dir string) (n struct {
	Tries   int
	GivenUp string `json:"given_up"`
	Why     string
},
) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, "unsent", l.rows[0].TrialID+".1.json"))
	if err == nil {
		err = json.Unmarshal(body, &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What a worker could not store is in the store once another process begins in its
// directory, and nothing is left of it there.
func TestUnsentIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		dir := unsentBundle(l)
		if l.sealed(l.rows[0], 1) {
			t.Fatal("it is in the store already")
		}
		m := l.machine(inDir(dir))
		m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Times: 7, Do: bundletest.Fail(bundle.ErrUnavailable)})
		m.start()
		synctest.Wait()
		if n := note(t, l, dir); n.Tries == 0 || !strings.Contains(n.Why, "unavailable") {
			t.Errorf("after the first try: %+v", n)
		}
		time.Sleep(24 * time.Hour) // of the bubble
		m.end()
		if !l.sealed(l.rows[0], 1) {
			t.Error("it is not in the store")
		}
		if left, _ := os.ReadDir(filepath.Join(dir, "unsent")); len(left) > 0 {
			t.Errorf("%s is left", left[0].Name())
		}
		if c := l.commit(0); c.Attempt != 2 {
			t.Errorf("commit of attempt %d: what counts has changed", c.Attempt)
		}
	})
}

// One that can't be stored is not tried for ever, and is kept.
func TestUnsentIsGivenUp(t *testing.T) {
	for _, test := range []struct {
		name  string
		fails error
		spoil func(t *testing.T, bundle string)
		why   string
		tries int
	}{
		{name: "the store is never there", fails: bundle.ErrUnavailable, why: "long enough", tries: 100},
		{name: "the store refuses it", fails: errors.New("access denied"), why: "access denied", tries: 1},
		{name: "a file is not what was sealed", spoil: func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "grade.yaml"), []byte("score: 1"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, why: "sealed with", tries: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, "", passes("a"))
				dir := unsentBundle(l)
				kept := filepath.Join(dir, "unsent", l.rows[0].TrialID+".1")
				if test.spoil != nil {
					test.spoil(t, kept)
				}
				m := l.machine(inDir(dir))
				if test.fails != nil {
					m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Do: bundletest.Fail(test.fails)})
				}
				m.start()
				time.Sleep(30 * 24 * time.Hour) // of the bubble
				m.end()
				if n := note(t, l, dir); n.Tries != test.tries || !strings.Contains(n.GivenUp, test.why) {
					t.Errorf("%+v, want %d tries and %q", n, test.tries, test.why)
				}
				// The next process knows, and asks the store for nothing.
				next := l.machine(inDir(dir)).start()
				time.Sleep(time.Hour) // of the bubble
				next.end()
				if n := next.store.Calls(bundletest.OpPut); n != 0 {
					t.Errorf("%d puts of one that was given up", n)
				}
				if _, err := os.Stat(kept); err != nil {
					t.Errorf("the only copy is gone: %v", err)
				}
			})
		})
	}
}

// A bundle for whose index there was no room is sealed as it stands, and sent; so is one
// whose note could be written only before the attempt.
func TestUnsentWithoutIndexOrNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		m := l.machine(func(c *worker.Config) { c.StoreRetry = time.Second })
		// Nothing can be written where the second note goes.
		note := filepath.Join(m.dir, "unsent", l.rows[0].TrialID+".1.json")
		write(t, filepath.Join(note+".new", "in the way"), "")
		back := m.store.Inject(bundletest.Fault{Op: bundletest.OpPut, Key: "/trials/", Do: bundletest.Fail(bundle.ErrUnavailable)})
		m.start()
		l.events.kind(worker.Retrying, 1)
		back()
		l.finish(m)
		if body, err := os.ReadFile(note); err != nil || !strings.Contains(string(body), l.rows[0].TrialID) {
			t.Fatalf("note %s, %v", body, err)
		}
		// As a disk without room leaves it.
		if err := os.Truncate(filepath.Join(m.dir, "unsent", l.rows[0].TrialID+".1", "index.json"), 10); err != nil {
			t.Fatal(err)
		}
		next := l.machine(inDir(m.dir)).start()
		synctest.Wait()
		next.end()
		if !l.sealed(l.rows[0], 1) {
			t.Error("it is not in the store")
		}
	})
}

// What belongs to another store, or to nobody knows whom, stays where it is.
func TestUnsentOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", passes("a"))
		dir := unsentBundle(l)
		write(t, filepath.Join(dir, "unsent", "someone", "else.txt"), "hello")
		m := l.machine(inDir(dir), func(c *worker.Config) { c.StoreUUID = "99999999-2222-4333-8444-555555555555" }).start()
		time.Sleep(time.Hour) // of the bubble
		m.end()
		if n := m.store.Calls(bundletest.OpPut); n != 0 {
			t.Errorf("%d puts into another store", n)
		}
		for _, name := range []string{l.rows[0].TrialID + ".1", "someone"} {
			if _, err := os.Stat(filepath.Join(dir, "unsent", name)); err != nil {
				t.Error(err)
			}
		}
	})
}
