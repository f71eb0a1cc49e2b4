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
