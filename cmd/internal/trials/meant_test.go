// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"errors"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
)

func TestWhatIsMeant(t *testing.T) {
	s := newShelf(t)
	s.run("early", 3, 1, "alpha", "sums/one")
	s.run("later", 2, 2, "gamma", "sums/two")
	for _, test := range []struct {
		task  string
		index int
		want  string
	}{
		{"gamma", 7, "task gamma of run later has 2 trials: gamma#0 to gamma#1"},
		{"gamma", noIndex, "task gamma of run later has 2 trials: gamma#0 to gamma#1"},
		{"gama", 1, "did you mean gamma#1? tidemill ls later lists the trials"},
		{"gama", 7, "did you mean gamma#0? tidemill ls later lists the trials"},
		{"early/alhpa", 2, "did you mean early/alpha#2? tidemill ls early lists the trials"},
		{"early/alpha", noIndex, "task alpha of run early has 3 trials: early/alpha#0 to early/alpha#2"},
		{"erly/sums/one", 2, "did you mean early/sums/one#2? tidemill ls lists the runs"},
		{"erly/zebra", 0, ""},
		{"erly", noIndex, "did you mean the run early? A trial of it is early/TASK#INDEX, and tidemill ls lists the runs"},
		{"erly", 0, ""}, // a task was meant
		{"zebra", noIndex, ""},
		{"", noIndex, ""},
	} {
		spots, err := spotsOf(t.Context(), s.Store, test.task)
		if err != nil {
			t.Fatal(err)
		}
		got, err := meant(t.Context(), s.Store, spots, test.task, test.index)
		if err != nil || got != test.want {
			t.Errorf("%q, %d: %q, %v; want %q", test.task, test.index, got, err, test.want)
		}
	}
}

// Trouble with the store is not told as a slip of the person.
func TestWhatIsMeantInAStoreThatFails(t *testing.T) {
	s := newShelf(t)
	s.run("r", 1, 10, "a")
	faulty := bundletest.NewFaulty(s.Store)
	faulty.Inject(bundletest.Fault{Times: 1000, Do: bundletest.Fail(bundle.ErrUnavailable)})
	if _, err := Find(t.Context(), faulty, "zebra"); !errors.Is(err, bundle.ErrUnavailable) {
		t.Errorf("error %v, want %v", err, bundle.ErrUnavailable)
	}
}
