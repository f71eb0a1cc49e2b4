// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/memstore"
)

func retry(trial string, epoch any) bundle.Control {
	return bundle.Control{Kind: bundle.ControlRetry, By: "test", Args: map[string]any{"epochs": map[string]any{trial: epoch}}}
}

// Of decisions that are taken at once none is lost, and each sees those before it.
func TestAppendControlRaces(t *testing.T) {
	s, keys := memstore.New(), bundle.Keys{Run: "r"}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := bundle.AppendControl(t.Context(), s, keys, func(before []bundle.Control) (bundle.Control, error) {
				epochs, err := bundle.CurrentEpochs(before)
				return retry("t", epochs.Of("t")+1), err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	records, err := bundle.ReadControl(t.Context(), s, keys)
	if err != nil {
		t.Fatal(err)
	}
	var revs []int
	for _, r := range records {
		revs = append(revs, r.Rev)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4, 5, 6, 7, 8}, revs); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	epochs, err := bundle.CurrentEpochs(records)
	if err != nil || epochs.Of("t") != 9 || epochs.Of("another") != 1 {
		t.Errorf("epochs %v, %v; want t in its 9th and others in their first", epochs, err)
	}
}

func TestAppendControlCanRefuse(t *testing.T) {
	s, keys := memstore.New(), bundle.Keys{Run: "r"}
	refused := errors.New("no")
	_, err := bundle.AppendControl(t.Context(), s, keys, func([]bundle.Control) (bundle.Control, error) {
		return bundle.Control{}, refused
	})
	if !errors.Is(err, refused) {
		t.Fatalf("got %v, want the refusal", err)
	}
	if records, err := bundle.ReadControl(t.Context(), s, keys); err != nil || len(records) != 0 {
		t.Fatalf("got %v, %v; want nothing written", records, err)
	}
}

func TestCurrentEpochsRefusesNonsense(t *testing.T) {
	for _, epoch := range []any{1.0, 2.5, "2", nil, -3.0, 1e300} {
		_, err := bundle.CurrentEpochs([]bundle.Control{retry("t", epoch)})
		if err == nil || !strings.Contains(err.Error(), "want a whole number from 2") {
			t.Errorf("epoch %v: got %v", epoch, err)
		}
	}
	if _, err := bundle.CurrentEpochs([]bundle.Control{{Kind: bundle.ControlRegrade, Rev: 3}}); err == nil ||
		!strings.Contains(err.Error(), "control record 3") {
		t.Errorf("without args: got %v", err)
	}
	if _, err := bundle.CurrentEpochs([]bundle.Control{{Kind: "of a newer version"}}); err != nil {
		t.Error(fmt.Errorf("an unknown kind is passed over: %w", err))
	}
}

// However many trials a decision names, it comes back as it was made, and what else it
// says stays readable.
func TestEpochsOfDecisions(t *testing.T) {
	s, keys := memstore.New(), bundle.Keys{Run: "r"}
	long := bundle.Epochs{}
	for i := range 2500 {
		long[fmt.Sprintf("%032x", i)] = 2 + i%3
	}
	want := []bundle.Epochs{{"a": 2, "b": 7}, long, {}}
	for _, epochs := range want {
		_, err := bundle.AppendControl(t.Context(), s, keys, func([]bundle.Control) (bundle.Control, error) {
			return bundle.Control{Kind: bundle.ControlRegrade, Epochs: epochs, Args: map[string]any{"packs": map[string]any{"x": "y"}}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	records, err := bundle.ReadControl(t.Context(), s, keys)
	if err != nil {
		t.Fatal(err)
	}
	var got []bundle.Epochs
	for _, r := range records {
		got = append(got, r.Epochs)
		if diff := cmp.Diff(map[string]any{"x": "y"}, r.Args["packs"]); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
	if _, inline := records[1].Args["epochs"]; inline || records[1].Args["epochs_sha256"] == nil {
		t.Error("a long list stands in the record")
	}
	epochs, err := bundle.CurrentEpochs(records)
	if err != nil || len(epochs) != 2502 || epochs.Of("b") != 7 {
		t.Errorf("%d current epochs, %v", len(epochs), err)
	}
	for _, c := range []struct {
		trial string
		epoch int
		rev   int
	}{{"a", 2, 1}, {"a", 3, 0}, {"b", 7, 1}, {fmt.Sprintf("%032x", 1), 3, 2}, {"c", 2, 0}} {
		rev := 0
		if by := bundle.OpenedBy(records, c.trial, c.epoch); by != nil {
			rev = by.Rev
		}
		if rev != c.rev {
			t.Errorf("epoch %d of %s was opened by decision %d, want %d", c.epoch, c.trial, rev, c.rev)
		}
	}
}

// A list that is gone, or another one, is an error: nobody knows what was decided.
func TestBrokenEpochs(t *testing.T) {
	long := bundle.Epochs{}
	for i := range 1001 {
		long[fmt.Sprintf("%032x", i)] = 2
	}
	for name, spoil := range map[string]func(s bundle.Store, key string) error{
		"gone":  func(s bundle.Store, key string) error { return s.Delete(t.Context(), key) },
		"other": func(s bundle.Store, key string) error { return s.Put(t.Context(), key, strings.NewReader("?"), -1) },
	} {
		s, keys := memstore.New(), bundle.Keys{Run: "r"}
		c, err := bundle.AppendControl(t.Context(), s, keys, func([]bundle.Control) (bundle.Control, error) {
			return bundle.Control{Kind: bundle.ControlRetry, Epochs: long}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		sum, _ := c.Args["epochs_sha256"].(string)
		if err := spoil(s, keys.ControlEpochs(sum)); err != nil {
			t.Fatal(err)
		}
		if _, err := bundle.ReadControl(t.Context(), s, keys); err == nil || !strings.Contains(err.Error(), "control record 1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := bundle.AppendControl(t.Context(), memstore.New(), bundle.Keys{Run: "r"}, func([]bundle.Control) (bundle.Control, error) {
		return bundle.Control{Kind: bundle.ControlRetry, Epochs: bundle.Epochs{"a": 1}}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "want a whole number from 2") {
		t.Errorf("a first epoch can't be opened: %v", err)
	}
}
