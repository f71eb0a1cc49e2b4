// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/memstore"
)

func TestEncodeRecord(t *testing.T) {
	got, err := bundle.EncodeRecord(bundle.Control{SchemaVersion: 1, Rev: 2, Kind: "pause", By: "<me> & you", Args: map[string]any{"b": 1, "a": "é"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema_version":1,"rev":2,"kind":"pause","at":"0001-01-01T00:00:00Z","by":"<me> & you","args":{"a":"é","b":1}}` + "\n"
	if string(got) != want {
		t.Errorf("got %s want %s", got, want)
	}
}

func TestDecodeRecord(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"ours", `{"schema_version":1,"rev":3}`, ""},
		{"unknown keys", `{"rev":3,"from_the_future":{"x":[1]},"schema_version":1}`, ""},
		{"newer", `{"schema_version":2,"rev":"three"}`, "schema_version 2 is newer than 1"},
		{"no version", `{"rev":3}`, "want a schema_version"},
		{"version 0", `{"schema_version":0}`, "want a schema_version"},
		{"version as text", `{"schema_version":"1"}`, "not a record"},
		{"wrong type", `{"schema_version":1,"rev":"three"}`, "rev"},
		{"cut", `{"schema_version":1,"re`, "not a record"},
		{"more behind it", `{"schema_version":1}{}`, "not a record"},
		{"a list", `[]`, "not a record"},
		{"nothing", ``, "not a record"},
	} {
		rec, err := bundle.DecodeRecord[bundle.Control]([]byte(c.body))
		if c.want == "" && (err != nil || rec.Rev != 3) {
			t.Errorf("%s: %+v, error %v", c.name, rec, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	_, err := bundle.DecodeRecord[bundle.Control]([]byte(`{"schema_version":9}`))
	var newer *bundle.VersionError
	if !errors.As(err, &newer) || newer.Got != 9 || newer.Known != bundle.SchemaVersion {
		t.Errorf("error %v, want a version error with 9", err)
	}
}

func TestRecordsInAStore(t *testing.T) {
	s := memstore.New()
	want := bundle.Control{SchemaVersion: 1, Rev: 1, Kind: "pause"}
	if err := bundle.CreateRecord(t.Context(), s, "c", want); err != nil {
		t.Fatal(err)
	}
	if err := bundle.CreateRecord(t.Context(), s, "c", want); !errors.Is(err, bundle.ErrExists) {
		t.Errorf("second create: error %v, want %v", err, bundle.ErrExists)
	}
	want.Rev = 2
	if err := bundle.PutRecord(t.Context(), s, "c", want); err != nil {
		t.Fatal(err)
	}
	got, err := bundle.ReadRecord[bundle.Control](t.Context(), s, "c")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if _, err := bundle.ReadRecord[bundle.Control](t.Context(), s, "none"); !errors.Is(err, bundle.ErrNotFound) {
		t.Errorf("read what isn't there: error %v", err)
	}
	huge := strings.Repeat(" ", 17<<20)
	if err := s.Put(t.Context(), "huge", strings.NewReader(huge), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.ReadRecord[bundle.Control](t.Context(), s, "huge"); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("read a huge record: error %v", err)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"schema_version":1,"trial_id":"x","grade":{"score":null},"metrics":{"usage":{}}}`))
	f.Add([]byte(`{"schema_version":2}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		rec, err := bundle.DecodeRecord[bundle.Commit](body)
		if err != nil {
			return
		}
		once, err := bundle.EncodeRecord(rec)
		if err != nil {
			t.Skip(err) // a time beyond what is written
		}
		again, err := bundle.DecodeRecord[bundle.Commit](once)
		if err != nil {
			t.Fatalf("what was encoded isn't read: %v", err)
		}
		twice, err := bundle.EncodeRecord(again)
		if err != nil || string(once) != string(twice) {
			t.Errorf("encoded as %s, then as %s, error %v", once, twice, err)
		}
	})
}
