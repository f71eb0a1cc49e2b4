// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/runtime"
)

const ours = "11111111-2222-3333-4444-555555555555"

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// leftover is an hour old, of a dead maker, and has not expired.
func leftover() runtime.Resource {
	return runtime.Resource{
		Handle:  runtime.Handle{Runtime: "docker", Kind: "container", ID: "1"},
		Name:    "t1",
		Created: noon.Add(-time.Hour),
		Labels: runtime.Labels{
			Store: ours, Run: "r", Task: "task", Trial: "t1", Attempt: 1, Worker: "w1", ExpiresAt: noon.Add(time.Hour),
		},
	}
}

func TestDecide(t *testing.T) {
	type change = func(*runtime.Resource, *Facts)
	expired := func(r *runtime.Resource, _ *Facts) { r.Labels.ExpiresAt = noon }
	alone := func(_ *runtime.Resource, f *Facts) { f.Alone = true }
	live := func(r *runtime.Resource, _ *Facts) { r.Live = true }
	kept := func(r *runtime.Resource, _ *Facts) { r.Kept = true }
	young := func(r *runtime.Resource, _ *Facts) { r.Created = noon.Add(-30 * time.Second) }
	foreign := func(r *runtime.Resource, _ *Facts) { r.Labels.Store = "another" }
	ageless := func(r *runtime.Resource, _ *Facts) { r.Created = time.Time{} }
	anyAge := func(_ *runtime.Resource, f *Facts) { f.MinAge = 0 }
	lease := func(l Lease) change { return func(_ *runtime.Resource, f *Facts) { f.Lease = l } }
	for _, c := range []struct {
		name    string
		changes []change
		goes    bool
		why     string
	}{
		{"nobody was asked", nil, false, "nobody can say who holds its trial's lease, until 2026-11-30T13:00:00Z"},
		{"nobody holds the lease", []change{lease(Free)}, true, "nobody holds"},
		{"another worker holds it", []change{lease(Others)}, true, "another worker"},
		{"its maker holds it", []change{lease(Makers)}, false, "its maker holds"},
		{"it expired this moment", []change{expired}, true, "expired at 2026-11-30T12:00:00Z"},
		{"it expired and the queue says its maker holds it", []change{expired, lease(Makers)}, true, "expired"},
		{"we are alone", []change{alone}, true, "its maker is gone"},
		{"we are alone, and the queue is behind", []change{alone, lease(Makers)}, true, "its maker is gone"},

		{"its maker lives", []change{live, lease(Free)}, false, "its maker lives"},
		{"its maker lives, alone", []change{live, alone}, false, "its maker lives"},
		{"its maker lives beyond the expiry", []change{live, expired}, false, "its maker lives"},
		{"it is kept", []change{kept, lease(Free)}, false, "kept, until 2026-11-30T13:00:00Z"},
		{"it is kept, alone", []change{kept, alone}, false, "kept"},
		{"it was kept", []change{kept, expired}, true, "was kept until"},
		{"it was kept, alone", []change{kept, expired, alone}, true, "was kept until"},
		{"somebody is in what was kept", []change{kept, expired, live}, false, "its maker lives"},

		{"it is young", []change{young, lease(Free)}, false, "younger than 1m0s"},
		{"it is young, alone", []change{young, alone}, false, "younger"},
		{"it is young and expired", []change{young, expired}, false, "younger"},
		{"it is young and age says nothing", []change{young, alone, anyAge}, true, "its maker is gone"},
		{"its age is unknown", []change{ageless, lease(Free)}, false, "how old"},
		{"its age is unknown and it expired", []change{ageless, expired}, true, "expired"},
		{"its age is unknown and says nothing", []change{ageless, alone, anyAge}, true, "its maker is gone"},

		{"another store's", []change{foreign, expired, alone, lease(Free)}, false, "another store"},
		{"nobody's", []change{func(r *runtime.Resource, _ *Facts) { r.Labels = runtime.Labels{} }, alone}, false, "another store"},
		{"nobody's, and we don't know who we are", []change{func(r *runtime.Resource, f *Facts) {
			r.Labels, f.Store = runtime.Labels{}, ""
		}, alone}, false, "another store"},
		{"a run's, not a trial's", []change{func(r *runtime.Resource, _ *Facts) { r.Labels.Trial = "" }, lease(Free)}, false, "no trial"},
		{"a run's, expired", []change{func(r *runtime.Resource, _ *Facts) { r.Labels.Trial = "" }, expired}, true, "expired"},
		{"it never expires", []change{func(r *runtime.Resource, _ *Facts) { r.Labels.ExpiresAt = time.Time{} }}, false, "nobody can say who holds its trial's lease"},
		{"it never expires, and nobody holds the lease", []change{func(r *runtime.Resource, _ *Facts) { r.Labels.ExpiresAt = time.Time{} }, lease(Free)}, true, "nobody holds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, f := leftover(), Facts{Store: ours, Now: noon, MinAge: time.Minute}
			for _, change := range c.changes {
				change(&r, &f)
			}
			got := Decide(r, f)
			if got.Goes != c.goes || !strings.Contains(got.Why, c.why) {
				t.Errorf("goes %v, %q; want %v, %q", got.Goes, got.Why, c.goes, c.why)
			}
			if ask := f.Lease == Unknown && strings.Contains(got.Why, "nobody can say"); got.Ask != ask {
				t.Errorf("ask %v; want %v", got.Ask, ask)
			}
		})
	}
}

// Whatever else holds: what lives, what is kept and what is another's stays; and asking
// can only let go what would otherwise wait.
func TestWhatNeverGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(name string) time.Time {
			if rapid.Bool().Draw(t, name+" is known") {
				return noon.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, name)))
			}
			return time.Time{}
		}
		word := func(name string) string { return rapid.SampledFrom([]string{"", "x", ours}).Draw(t, name) }
		r := runtime.Resource{
			Live: rapid.Bool().Draw(t, "live"), Kept: rapid.Bool().Draw(t, "kept"), Created: at("created"),
			Labels: runtime.Labels{Store: word("store"), Run: word("run"), Trial: word("trial"), ExpiresAt: at("expires")},
		}
		f := Facts{
			Store: ours, Now: noon, Alone: rapid.Bool().Draw(t, "alone"),
			MinAge: time.Duration(rapid.IntRange(0, int(2*time.Minute)).Draw(t, "min age")),
			Lease:  rapid.SampledFrom([]Lease{Unknown, Free, Makers, Others}).Draw(t, "lease"),
		}
		v := Decide(r, f)
		if v.Why == "" || v.Goes && v.Ask {
			t.Fatalf("verdict %+v", v)
		}
		expired := !r.Labels.ExpiresAt.IsZero() && !noon.Before(r.Labels.ExpiresAt)
		tooYoung := f.MinAge > 0 && !r.Created.IsZero() && noon.Sub(r.Created) < f.MinAge
		if v.Goes && (r.Live || r.Labels.Store != ours || r.Kept && !expired || tooYoung) {
			t.Fatalf("it goes: %s", v.Why)
		}
		if v.Goes && !expired && !f.Alone && f.Lease != Free && f.Lease != Others {
			t.Fatalf("it goes without a proof: %s", v.Why)
		}
	})
}
