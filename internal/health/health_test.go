// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/internal/health"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func none() []health.Reason { return nil }

type told struct {
	Status  string
	Reasons []health.Reason
}

func ask(t *testing.T, h http.Handler, method, path string) (int, told) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
	var got told
	if rec.Header().Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v in %s", path, err, rec.Body)
		}
	}
	return rec.Code, got
}

func TestAnswers(t *testing.T) {
	stuck, full := health.Reason{Check: "heartbeat", Detail: "hangs"}, health.Reason{Check: "disk", Detail: "full"}
	away := health.Check{Name: "store", Ask: func(context.Context) error { return errors.New("refused") }}
	for _, test := range []struct {
		name         string
		c            health.Config
		live, ready  int
		status, list string
	}{
		{name: "well", live: 200, ready: 200, status: "ready"},
		{name: "stuck", c: health.Config{Live: func() []health.Reason { return []health.Reason{stuck} }}, live: 503, ready: 503, status: "not ready", list: "heartbeat"},
		{name: "no disk", c: health.Config{Ready: func() []health.Reason { return []health.Reason{full} }}, live: 200, ready: 503, status: "not ready", list: "disk"},
		{name: "no store", c: health.Config{Checks: []health.Check{away}}, live: 200, ready: 503, status: "not ready", list: "store"},
		{name: "neither disk nor store", c: health.Config{Ready: func() []health.Reason { return []health.Reason{full} }, Checks: []health.Check{away}}, live: 200, ready: 503, status: "not ready", list: "disk store"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.c.Live == nil {
				test.c.Live = none
			}
			if test.c.Ready == nil {
				test.c.Ready = none
			}
			h := health.Handler(test.c)
			if code, _ := ask(t, h, "GET", "/healthz"); code != test.live {
				t.Errorf("/healthz: %d, want %d", code, test.live)
			}
			code, got := ask(t, h, "GET", "/readyz")
			var names []string
			for _, r := range got.Reasons {
				names = append(names, r.Check)
			}
			if code != test.ready || got.Status != test.status || strings.Join(names, " ") != test.list || got.Reasons == nil {
				t.Errorf("/readyz: %d %+v, want %d, %s, because of %q", code, got, test.ready, test.status, test.list)
			}
			if code, _ := ask(t, h, "POST", "/readyz"); code != http.StatusMethodNotAllowed {
				t.Errorf("POST: %d", code)
			}
			if code, _ := ask(t, h, "GET", "/status"); code != http.StatusNotFound {
				t.Errorf("/status of one who tells none: %d", code)
			}
		})
	}
}

// An answer is good for a while, so that many who ask cost little; one that doesn't come
// is a no in bounded time.
func TestChecksAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var hangs atomic.Bool
		h := health.Handler(health.Config{Live: none, Ready: none, Checks: []health.Check{{Name: "queue", Ask: func(ctx context.Context) error {
			asked.Add(1)
			if hangs.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}}})
		for range 10 {
			if code, _ := ask(t, h, "GET", "/readyz"); code != 200 {
				t.Errorf("%d", code)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		hangs.Store(true)
		time.Sleep(6 * time.Second) // of the bubble
		start := time.Now()
		code, got := ask(t, h, "GET", "/readyz")
		if code != 503 || len(got.Reasons) != 1 || !strings.Contains(got.Reasons[0].Detail, "no answer within 2s") {
			t.Errorf("%d %+v", code, got)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dog health.Watchdog
		names := func() (list []string) {
			for _, s := range dog.Stuck() {
				list = append(list, s.Name)
			}
			return list
		}
		late, later, resting, over := dog.Watch("late", time.Minute), dog.Watch("later", time.Second), dog.Watch("resting", time.Second), dog.Watch("over", time.Second)
		dog.Watch("never begun", time.Second)
		for _, p := range []*health.Pulse{later, late, resting, over} {
			p.Touch()
			time.Sleep(time.Millisecond) // of the bubble
		}
		resting.Rest()
		over.End()
		over.End()
		if got := names(); got != nil {
			t.Errorf("%v are late at once", got)
		}
		time.Sleep(30 * time.Second)
		if got := names(); !slices.Equal(got, []string{"later"}) {
			t.Errorf("%v, want only the one who has a second", got)
		}
		time.Sleep(time.Minute)
		if got := names(); !slices.Equal(got, []string{"later", "late"}) {
			t.Errorf("%v, want both, the latest first", got)
		}
		later.Touch()
		if got := names(); !slices.Equal(got, []string{"late"}) {
			t.Errorf("%v after one came by", got)
		}
		if text := dog.Stuck()[0].String(); !strings.Contains(text, "late has not come by for 1m30s, want every 1m0s") {
			t.Error(text)
		}
	})
}

func TestServe(t *testing.T) {
	s, err := health.Serve("127.0.0.1:0", health.Handler(health.Config{Live: none, Ready: none, Status: func() any { return map[string]int{"slots": 3} }}))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + s.Addr() + "/status")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]int
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || got["slots"] != 3 {
		t.Errorf("%v, %v", got, err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	if _, err := health.Serve(s.Addr(), http.NotFoundHandler()); err == nil {
		t.Error("two listen on one address")
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
