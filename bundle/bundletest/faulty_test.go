// SPDX-License-Identifier: Apache-2.0

package bundletest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFaultyWithoutFaults is a store like any other.
func TestFaultyWithoutFaults(t *testing.T) {
	bundletest.Run(t, bundletest.Harness{
		Open:     func(*testing.T) bundle.Store { return bundletest.NewFaulty(memstore.New()) },
		InMemory: true,
	})
}

func TestFaults(t *testing.T) {
	ctx := t.Context()
	s := bundletest.NewFaulty(memstore.New())
	put := func(key string) error { return s.Put(ctx, key, strings.NewReader("body"), 4) }

	remove := s.Inject(bundletest.Fault{Op: bundletest.OpPut, Key: "x/", After: 1, Times: 2, Do: bundletest.Fail(bundle.ErrNoSpace)})
	for i, want := range []error{nil, bundle.ErrNoSpace, bundle.ErrNoSpace, nil} {
		if err := put("x/k"); !errors.Is(err, want) {
			t.Errorf("put %d: error %v, want %v", i, err, want)
		}
		if err := put("y/k"); err != nil {
			t.Errorf("put elsewhere: %v", err)
		}
	}
	remove()
	if got := s.Calls(bundletest.OpPut); got != 8 {
		t.Errorf("%d puts were counted, want 8", got)
	}

	remove = s.Inject(bundletest.Fault{Op: bundletest.OpDelete, Do: bundletest.DropAnswer()})
	if err := s.Delete(ctx, "x/k"); !errors.Is(err, bundle.ErrUnavailable) {
		t.Errorf("delete: error %v, want %v", err, bundle.ErrUnavailable)
	}
	remove()
	if _, _, err := s.Get(ctx, "x/k"); !errors.Is(err, bundle.ErrNotFound) {
		t.Errorf("the delete whose answer was lost had no effect: %v", err)
	}

	remove = s.Inject(bundletest.Fault{Op: bundletest.OpGet, Do: bundletest.Cut(2)})
	r, _, err := s.Get(ctx, "y/k")
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(r); string(body) != "bo" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q, error %v; want bo and an unexpected end", body, err)
	}
	remove()

	remove = s.Inject(bundletest.Fault{Op: bundletest.OpCreate, Do: bundletest.Lie()})
	if _, err := s.Create(ctx, "y/k", []byte("lie")); err != nil {
		t.Errorf("create over an object: error %v, want a lie", err)
	}
	remove()

	stalled, cancel := context.WithCancel(ctx)
	s.Inject(bundletest.Fault{Do: bundletest.Stall(), Hit: func(bundletest.Op, string) { cancel() }})
	if err := s.Delete(stalled, "y/k"); !errors.Is(err, context.Canceled) {
		t.Errorf("stalled delete: error %v, want %v", err, context.Canceled)
	}
}
