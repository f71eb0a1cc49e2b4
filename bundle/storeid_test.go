// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
)

func TestOpenIdentity(t *testing.T) {
	s := memstore.New()
	if _, err := bundle.ReadIdentity(t.Context(), s); !errors.Is(err, bundle.ErrNotFound) {
		t.Errorf("identity of an empty store: error %v, want %v", err, bundle.ErrNotFound)
	}
	ids := make([]string, 16)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			rec, err := bundle.OpenIdentity(t.Context(), s)
			if err != nil || rec.Layout != bundle.Layout {
				t.Errorf("record %+v, error %v", rec, err)
			}
			ids[i] = rec.StoreUUID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("one store, several identities: %q", ids)
		}
	}
}

func TestOpenIdentityRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"schema_version":1,"store_uuid":"u","layout":2}`: "has layout 2, this version knows 1",
		`{"schema_version":2,"store_uuid":"u","layout":1}`: "schema_version 2 is newer",
		`{"schema_version":1,"store_uuid":"","layout":1}`:  "no uuid",
		`hello`: "not a record",
	} {
		s := memstore.New()
		if _, err := s.Create(t.Context(), bundle.StoreKey, []byte(body)); err != nil {
			t.Fatal(err)
		}
		if _, err := bundle.OpenIdentity(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), s.URL()) {
			t.Errorf("%s: error %v, want one with %q and the store's URL", body, err, want)
		}
	}
}

func TestOpenIdentityWithTrouble(t *testing.T) {
	s := bundletest.NewFaulty(memstore.New())
	s.Inject(bundletest.Fault{Op: bundletest.OpCreate, Times: 1, Do: bundletest.DropAnswer()})
	first, err := bundle.OpenIdentity(t.Context(), s)
	if err != nil {
		t.Fatalf("answer lost: %v", err)
	}
	if again, err := bundle.OpenIdentity(t.Context(), s); again != first || err != nil {
		t.Errorf("then %+v, error %v; want %+v", again, err, first)
	}
	s = bundletest.NewFaulty(memstore.New())
	s.Inject(bundletest.Fault{Op: bundletest.OpCreate, Do: bundletest.Fail(bundle.ErrNoSpace)})
	if _, err := bundle.OpenIdentity(t.Context(), s); !errors.Is(err, bundle.ErrNoSpace) {
		t.Errorf("no room: error %v, want %v", err, bundle.ErrNoSpace)
	}
}

func TestSelfTest(t *testing.T) {
	down := errors.New("down")
	for _, c := range []struct {
		name  string
		fault bundletest.Fault
		want  error
	}{
		{"sound", bundletest.Fault{Op: bundletest.OpSwap, Do: bundletest.Lie()}, nil},
		{"all win", bundletest.Fault{Op: bundletest.OpCreate, Do: bundletest.Lie()}, bundle.ErrNotAtomic},
		{"two win", bundletest.Fault{Op: bundletest.OpCreate, After: 20, Times: 1, Do: bundletest.Lie()}, bundle.ErrNotAtomic},
		{"nobody wins", bundletest.Fault{Op: bundletest.OpCreate, Do: bundletest.Fail(bundle.ErrExists)}, bundle.ErrNotAtomic},
		{"nobody wins at first", bundletest.Fault{Op: bundletest.OpCreate, Times: 40, Do: bundletest.Fail(bundle.ErrExists)}, nil},
		{"unavailable", bundletest.Fault{Op: bundletest.OpCreate, After: 5, Do: bundletest.Fail(down)}, down},
		{"can't clean up", bundletest.Fault{Op: bundletest.OpDelete, Do: bundletest.Fail(down)}, down},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := memstore.New()
			s := bundletest.NewFaulty(mem)
			s.Inject(c.fault)
			err := bundle.SelfTest(t.Context(), s)
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), s.URL()) {
				t.Errorf("error %v doesn't name the store", err)
			}
			if c.fault.Op == bundletest.OpDelete {
				return
			}
			for info := range mem.List(t.Context(), "") {
				t.Errorf("%s was left behind", info.Key)
			}
		})
	}
}

// TestSelfTestCancelled: whoever gives up half-way leaves no key either.
func TestSelfTestCancelled(t *testing.T) {
	mem := memstore.New()
	s := bundletest.NewFaulty(mem)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Inject(bundletest.Fault{Op: bundletest.OpCreate, After: 10, Do: bundletest.Stall(), Hit: func(bundletest.Op, string) { cancel() }})
	if err := bundle.SelfTest(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	for info := range mem.List(t.Context(), "") {
		t.Errorf("%s was left behind", info.Key)
	}
}

// A store that lost its identity but not its runs is nobody new: the ids of its trials are
// those of the one that is lost.
func TestOpenIdentityOfAStoreWithRuns(t *testing.T) {
	s := memstore.New()
	if _, err := s.Create(t.Context(), bundle.Keys{Run: "r"}.RunFile(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	_, err := bundle.OpenIdentity(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "runs/r/run.yaml") || !strings.Contains(err.Error(), bundle.StoreKey) {
		t.Errorf("got %v, want a refusal that names a run and what is missing", err)
	}
	if _, err := bundle.ReadIdentity(t.Context(), s); !errors.Is(err, bundle.ErrNotFound) {
		t.Errorf("an identity was made all the same: %v", err)
	}
}
