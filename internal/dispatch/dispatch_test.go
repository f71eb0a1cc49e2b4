// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
	"github.com/tidemill/tidemill/internal/dispatch"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBody(t *testing.T) {
	ref := bundle.PlanRef{Part: 12, Row: 4999}
	body := dispatch.Body(ref)
	if string(body) != `{"part":12,"row":4999}` || len(body) > queue.MaxBody {
		t.Errorf("body %s", body)
	}
	if got, err := dispatch.ParseBody(body); got != ref || err != nil {
		t.Errorf("parsed %+v, %v", got, err)
	}
}

func TestParseBodyRefuses(t *testing.T) {
	for _, body := range []string{
		"", "{}", "null", "[0,1]", `{"part":1}`, `{"row":1}`, `{"part":-1,"row":0}`, `{"part":0,"row":-1}`, `{"part":1.5,"row":0}`,
		`{"part":"1","row":0}`, `{"part":0,"row":0,"x":1}`, `{"part":0,"row":0}{}`, `{"part":0,"row":0} x`, `{"part":99999999999999999999,"row":0}`,
		strings.Repeat("x", 5000),
	} {
		ref, err := dispatch.ParseBody([]byte(body))
		if err == nil || ref != (bundle.PlanRef{}) || len(err.Error()) > 500 || !strings.Contains(err.Error(), "want") {
			t.Errorf("%.40q: %+v, %v", body, ref, err)
		}
	}
}

func FuzzParseBody(f *testing.F) {
	f.Add([]byte(`{"part":0,"row":1}`))
	f.Add([]byte(` {"row":1,"part":0} `))
	f.Add([]byte(`{"part":0,"part":1,"row":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		ref, err := dispatch.ParseBody(body)
		if err != nil {
			return
		}
		if ref.Part < 0 || ref.Row < 0 {
			t.Fatalf("%q: %+v", body, ref)
		}
		if again, err := dispatch.ParseBody(dispatch.Body(ref)); again != ref || err != nil {
			t.Fatalf("%q: %+v, then %+v, %v", body, ref, again, err)
		}
	})
}

func record(id string) manifest.RunRecord {
	return manifest.RunRecord{
		SchemaVersion: 1, RunID: id, CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC), Producer: "v1",
		Plan:  manifest.Plan{Digest: "d", Tasks: 2, Trials: 4, Parts: 1},
		Packs: []manifest.PackRef{{Name: "p", SHA256: "ab", Tasks: 2}},
		Run: manifest.Run{
			Version: 1, Name: "n", Packs: []string{"/p"}, Repeats: 2, Pool: "gpus", Priority: "high", NetworkPolicy: "no_internet",
			Agent:   manifest.Agent{Name: "a", Command: []string{"sh", "-c", "yes: no"}, Timeout: manifest.Duration(90 * time.Minute)},
			Runtime: manifest.RuntimeConfig{Type: "docker", Resources: manifest.Resources{GPUs: 1, Memory: 1 << 30}, Options: map[string]any{"k": "v"}},
			Limits:  manifest.Limits{MaxInFlight: 8, MaxStartsPerSecond: 2.5},
			Retry:   manifest.Retry{MaxAttempts: 3, MinBackoff: manifest.Duration(time.Second)},
		},
	}
}

func put(t *testing.T, s bundle.Store, id string, body []byte) {
	t.Helper()
	if err := s.Put(t.Context(), bundle.Keys{Run: id}.RunFile(), bytes.NewReader(body), int64(len(body))); err != nil {
		t.Fatal(err)
	}
}

func TestRunFileComesBack(t *testing.T) {
	s := memstore.New()
	want := record("r1")
	body, err := dispatch.EncodeRun(want)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "r1", body)
	got, err := dispatch.LoadRun(t.Context(), s, "r1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownRun(t *testing.T) {
	s := memstore.New()
	_, err := dispatch.LoadRun(t.Context(), s, "r1")
	if e, ok := errors.AsType[*dispatch.UnknownRunError](err); !ok || len(e.Known) != 0 || !strings.Contains(err.Error(), "no runs at all") {
		t.Errorf("empty store: %v", err)
	}
	put(t, s, "r2", nil)
	put(t, s, "r1", nil)
	for _, id := range []string{"r3", "", ".", "../x", "r1/x", "R 1", strings.Repeat("x", 2000)} {
		_, err := dispatch.LoadRun(t.Context(), s, id)
		if e, ok := errors.AsType[*dispatch.UnknownRunError](err); !ok || !cmp.Equal(e.Known, []string{"r1", "r2"}) || e.More || len(err.Error()) > 300 {
			t.Errorf("run %.20q: %v", id, err)
		}
	}
	for i := range 100 {
		put(t, s, fmt.Sprintf("r%03d", i), nil)
	}
	_, err = dispatch.LoadRun(t.Context(), s, "none")
	if e, ok := errors.AsType[*dispatch.UnknownRunError](err); !ok || !e.More || len(e.Known) != 20 || !strings.Contains(err.Error(), "among") {
		t.Errorf("many runs: %v", err)
	}
}

func TestBadRun(t *testing.T) {
	for body, want := range map[string]string{
		"":                                    "schema_version",
		"run_id: r1\n":                        "schema_version",
		"[":                                   "run.yaml",
		"- 1":                                 "run.yaml",
		"schema_version: 2\nrun: [new shape]": "newer",
		"schema_version: 1\nrun_id: other\n":  "other",
		"schema_version: 1\nrun_id: r1\nplan: {parts: -1}\n":                  "-1",
		"schema_version: 1\nrun_id: r1\nrun: {agent: {timeout: soon}}\n":      "soon",
		"schema_version: 1\nrun_id: r1\n" + strings.Repeat("# filler\n", 2e6): "more than",
	} {
		s := memstore.New()
		put(t, s, "r1", []byte(body))
		_, err := dispatch.LoadRun(t.Context(), s, "r1")
		if bad, ok := errors.AsType[*dispatch.BadRunError](err); !ok || bad.Run != "r1" || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want a BadRunError that says %q", body, err, want)
		}
	}
	s := memstore.New()
	put(t, s, "r1", []byte("schema_version: 7"))
	_, err := dispatch.LoadRun(t.Context(), s, "r1")
	if v, ok := errors.AsType[*bundle.VersionError](err); !ok || v.Got != 7 {
		t.Errorf("newer file: %v", err)
	}
}

// Trouble with the store is neither an unknown nor a bad run.
func TestStoreTrouble(t *testing.T) {
	for name, fault := range map[string]bundletest.Fault{
		"get":  {Op: bundletest.OpGet, Do: bundletest.Fail(bundle.ErrUnavailable)},
		"cut":  {Op: bundletest.OpGet, Do: bundletest.Cut(5)},
		"list": {Op: bundletest.OpList, Do: bundletest.Fail(bundle.ErrUnavailable)},
	} {
		s := bundletest.NewFaulty(memstore.New())
		id := "r1"
		if name == "list" {
			id = "none"
		}
		put(t, s, "r1", []byte("schema_version: 1\nrun_id: r1\n"))
		s.Inject(fault)
		_, err := dispatch.LoadRun(t.Context(), s, id)
		_, unknown := errors.AsType[*dispatch.UnknownRunError](err)
		_, bad := errors.AsType[*dispatch.BadRunError](err)
		if err == nil || unknown || bad || !strings.Contains(err.Error(), id) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestQueueRun(t *testing.T) {
	got, err := dispatch.QueueRun(record("r1"))
	want := queue.Run{
		ID: "r1", Pool: "gpus", Class: "docker-gpu", Priority: queue.High,
		Limits: queue.Limits{MaxInFlight: 8, MaxStartsPerSecond: 2.5},
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	plain := record("r1")
	plain.Run.Pool, plain.Run.Priority, plain.Run.Runtime.Resources.GPUs = "", "", 0
	if got, err := dispatch.QueueRun(plain); err != nil || got.Pool != queue.DefaultPool || got.Priority != queue.Normal || got.Class != "docker" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, change := range []func(*manifest.RunRecord){
		func(r *manifest.RunRecord) { r.RunID = "R1" },
		func(r *manifest.RunRecord) { r.RunID = strings.Repeat("a", 64) },
		func(r *manifest.RunRecord) { r.Run.Runtime.Type = "dock er" },
		func(r *manifest.RunRecord) { r.Run.Priority = "urgent" },
	} {
		rec := record("r1")
		change(&rec)
		if _, err := dispatch.QueueRun(rec); err == nil {
			t.Errorf("%+v is accepted", rec)
		}
	}
}
