// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/s3store"
	"github.com/tidemill/tidemill/internal/testenv"
)

// calls are those of a store, on the key k that holds "old".
var calls = map[string]func(ctx context.Context, s bundle.Store) error{
	"create": func(ctx context.Context, s bundle.Store) error {
		_, err := s.Create(ctx, "new", []byte("new"))
		return err
	},
	"put": func(ctx context.Context, s bundle.Store) error {
		return s.Put(ctx, "k", strings.NewReader("new"), 3)
	},
	"get": func(ctx context.Context, s bundle.Store) error {
		r, _, err := s.Get(ctx, "k")
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r)
		return errors.Join(err, r.Close())
	},
	"get range": func(ctx context.Context, s bundle.Store) error {
		r, err := s.GetRange(ctx, "k", 1, 2)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r)
		return errors.Join(err, r.Close())
	},
	"list": func(ctx context.Context, s bundle.Store) error {
		for _, err := range s.List(ctx, "") {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"delete": func(ctx context.Context, s bundle.Store) error { return s.Delete(ctx, "k") },
}

// What lasts becomes an error that says what it is, in every call; what passes is no
// error.
func TestFaultsBecomeSentinels(t *testing.T) {
	l := newLab(t)
	for name, c := range map[string]struct {
		do     testenv.HTTPAction
		lasts  error // of a fault that lasts
		passes bool  // whether one that befalls a single request is made good
	}{
		"slow down":         {testenv.Answer(http.StatusServiceUnavailable, "SlowDown"), bundle.ErrUnavailable, true},
		"too many requests": {testenv.Answer(http.StatusTooManyRequests, "TooManyRequests"), bundle.ErrUnavailable, true},
		"internal error":    {testenv.Answer(http.StatusInternalServerError, "InternalError"), bundle.ErrUnavailable, true},
		"bad gateway":       {testenv.Answer(http.StatusBadGateway, "BadGateway"), bundle.ErrUnavailable, true},
		"request timeout":   {testenv.Answer(http.StatusBadRequest, "RequestTimeout"), bundle.ErrUnavailable, true},
		"conflict":          {testenv.Answer(http.StatusConflict, "ConditionalRequestConflict"), bundle.ErrUnavailable, true},
		"cut before":        {testenv.CutBefore(), bundle.ErrUnavailable, true},
		"cut after":         {testenv.CutAfter(), bundle.ErrUnavailable, true},
		"error after":       {testenv.AnswerAfter(http.StatusInternalServerError, "InternalError"), bundle.ErrUnavailable, true},
		"stall":             {testenv.Stall(), bundle.ErrUnavailable, true},
		"slow":              {testenv.Delay(20 * time.Millisecond), nil, true},
		"access denied":     {testenv.Answer(http.StatusForbidden, "AccessDenied"), bundle.ErrDenied, false},
		"expired":           {testenv.Answer(http.StatusBadRequest, "ExpiredToken"), bundle.ErrDenied, false},
		"quota":             {testenv.Answer(http.StatusForbidden, "QuotaExceeded"), bundle.ErrNoSpace, false},
		"disk full":         {testenv.Answer(http.StatusInsufficientStorage, "XMinioStorageFull"), bundle.ErrNoSpace, false},
		"bucket removed":    {testenv.Answer(http.StatusNotFound, "NoSuchBucket"), nil, false},
	} {
		for call, do := range calls {
			t.Run(name+"/"+call, func(t *testing.T) {
				s := opened(t, l.server.URL(l.server.Prefix(), l.proxy.URL), func(o *s3store.Options) {
					o.Attempts = 3
					if name == "stall" {
						hasty(o)
					}
				})
				if _, err := s.Create(t.Context(), "k", []byte("old")); err != nil {
					t.Fatal(err)
				}
				count := l.proxy.Inject(testenv.HTTPFault{Times: 1, Do: c.do})
				err := do(t.Context(), s)
				if (err == nil) != c.passes {
					t.Errorf("with one such answer: error %v", err)
				}
				if count() != 1 {
					t.Error("the fault didn't happen")
				}
				_ = s.Delete(t.Context(), "new")
				defer l.proxy.Inject(testenv.HTTPFault{Do: c.do})()
				if err := do(t.Context(), s); !errors.Is(err, c.lasts) && (c.lasts != nil || c.passes) {
					t.Errorf("with such answers only: error %v, want %v", err, c.lasts)
				} else if c.lasts == nil && !c.passes && errors.Is(err, bundle.ErrNotFound) {
					t.Errorf("error %v, want another", err)
				}
			})
		}
	}
}

// The budget of retries ends an outage's calls at once, and comes back with it.
func TestRetriesHaveABudget(t *testing.T) {
	l := newLab(t)
	s := opened(t, l.faulty(), func(o *s3store.Options) { o.Attempts = 3 })
	remove := l.proxy.Inject(testenv.HTTPFault{Do: testenv.Answer(http.StatusInternalServerError, "InternalError")})
	l.proxy.Seen()
	for range 60 {
		if err := s.Delete(t.Context(), "k"); !errors.Is(err, bundle.ErrUnavailable) {
			t.Fatalf("error %v, want %v", err, bundle.ErrUnavailable)
		}
	}
	// 1000 tokens at 14 a retry.
	if got, most := len(l.proxy.Seen()), 60+1000/14; got > most {
		t.Errorf("%d requests for 60 calls, want at most %d", got, most)
	}
	remove()
	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Error(err)
	}
}

// A create whose answer was lost is ours if our nonce is there, and nobody else's.
func TestCreateWhoseAnswerWasLost(t *testing.T) {
	l := newLab(t)
	s := opened(t, l.faulty())
	l.proxy.Inject(testenv.HTTPFault{Match: puts, Times: 1, Do: testenv.CutAfter()})
	v, err := s.Create(t.Context(), "k", []byte("mine"))
	if err != nil {
		t.Fatalf("the repetition found our own object: %v", err)
	}
	if _, err := s.Swap(t.Context(), "k", v, []byte("next")); err != nil {
		t.Errorf("swap with the version that was returned: %v", err)
	}

	// Another's object, of the same bytes.
	other := opened(t, l.direct())
	if _, err := other.Create(t.Context(), "j", []byte("same")); err != nil {
		t.Fatal(err)
	}
	l.proxy.Inject(testenv.HTTPFault{Match: puts, Times: 1, Do: testenv.CutBefore()})
	if _, err := s.Create(t.Context(), "j", []byte("same")); !errors.Is(err, bundle.ErrExists) {
		t.Errorf("create of what another has created: error %v, want %v", err, bundle.ErrExists)
	}
}

func TestSwapWhoseAnswerWasLost(t *testing.T) {
	l := newLab(t)
	s := opened(t, l.faulty())
	v, err := s.Create(t.Context(), "k", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	// So that the service was found to compare tags already.
	if v, err = s.Swap(t.Context(), "k", v, []byte("2")); err != nil {
		t.Fatal(err)
	}
	l.proxy.Inject(testenv.HTTPFault{Match: puts, Times: 1, Do: testenv.CutAfter()})
	if v, err = s.Swap(t.Context(), "k", v, []byte("3")); err != nil {
		t.Fatalf("the repetition found our own object: %v", err)
	}
	// Somebody writes between the lost answer and the repetition.
	l.proxy.Inject(testenv.HTTPFault{Match: puts, Times: 1, Do: func(p *testenv.FaultProxy, w http.ResponseWriter, r *http.Request) {
		testenv.AnswerAfter(http.StatusInternalServerError, "InternalError")(p, w, r)
		if err := opened(t, l.direct()).Put(t.Context(), "k", strings.NewReader("theirs"), 6); err != nil {
			t.Error(err)
		}
	}})
	if _, err = s.Swap(t.Context(), "k", v, []byte("4")); !errors.Is(err, bundle.ErrUnavailable) {
		t.Errorf("error %v, want %v: nobody knows whether 4 was there", err, bundle.ErrUnavailable)
	}
}

// A service that ignores conditions on tags is found out before it does harm.
func TestSwapNeedsAServiceThatCompares(t *testing.T) {
	l := newLab(t)
	s := opened(t, l.faulty())
	v, err := s.Create(t.Context(), "k", []byte("old"))
	if err != nil {
		t.Fatal(err)
	}
	l.proxy.Inject(testenv.HTTPFault{Match: puts, Do: ignore(t, l.server, "If-Match")})
	_, err = s.Swap(t.Context(), "k", v, []byte("new"))
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "ignores If-Match") {
		t.Errorf("error %v, want %v", err, errors.ErrUnsupported)
	}
	if got := read(t, s, "k"); got != "old" {
		t.Errorf("k holds %q", got)
	}
}

// A large object that breaks off, or stops coming, is read on from there.
func TestReadingGoesOn(t *testing.T) {
	l := newLab(t)
	want := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	s := opened(t, l.faulty())
	if err := s.Put(t.Context(), "k", bytes.NewReader(want), int64(len(want))); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]testenv.HTTPAction{
		"breaks off at once": testenv.Truncate(0), "breaks off": testenv.Truncate(700_001), "stalls": testenv.StallAt(300_000),
	} {
		t.Run(name, func(t *testing.T) {
			s := s
			if name == "stalls" {
				s = opened(t, l.faulty(), hasty)
			}
			defer l.proxy.Inject(testenv.HTTPFault{Match: gets, Times: 2, Do: do})()
			if got := read(t, s, "k"); got != string(want) {
				t.Errorf("read %d bytes, others than were written", len(got))
			}
			r, err := s.GetRange(t.Context(), "k", 5, 1_000_000)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want[5:1_000_005]) {
				t.Errorf("range: %d bytes, others than were written; %v", len(got), err)
			}
		})
	}
	t.Run("breaks off for good", func(t *testing.T) {
		defer l.proxy.Inject(testenv.HTTPFault{Match: gets, Do: testenv.Truncate(0)})()
		err := calls["get"](t.Context(), s)
		if !errors.Is(err, bundle.ErrUnavailable) {
			t.Errorf("error %v, want %v", err, bundle.ErrUnavailable)
		}
	})
	t.Run("is replaced meanwhile", func(t *testing.T) {
		l.proxy.Inject(testenv.HTTPFault{Match: gets, Times: 1, Do: testenv.Truncate(400_000)})
		cut, _, err := s.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		defer cut.Close()
		if err := s.Put(t.Context(), "k", strings.NewReader("other"), 5); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(cut); !errors.Is(err, bundle.ErrUnavailable) {
			t.Errorf("read %d bytes, error %v; want %v, not a mixture", len(got), err, bundle.ErrUnavailable)
		}
	})
}

// The caller's context ends a call that stalls, with its own error.
func TestTheContextEndsAStall(t *testing.T) {
	l := newLab(t)
	s := opened(t, l.faulty())
	for name, do := range calls {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			defer l.proxy.Inject(testenv.HTTPFault{Do: func(p *testenv.FaultProxy, w http.ResponseWriter, r *http.Request) {
				cancel()
				testenv.Stall()(p, w, r)
			}})()
			if err := do(ctx, s); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want %v", err, context.Canceled)
			}
		})
	}
}
