// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/cmd/internal/fleet"
	"github.com/tidemill/tidemill/queue"
)

// Why nobody takes what waits is said by what nobody has, or by what keeps everybody.
func TestHeldUp(t *testing.T) {
	w := func(name, pool string, offers ...string) queue.Presence {
		return queue.Presence{Worker: name, Pool: pool, Offers: offers, Slots: 2}
	}
	leaving := w("w9", "default", "docker")
	leaving.Draining = true
	held := w("w2", "default", "docker")
	held.Holds = []string{"free disk is low", "available memory is low"}
	poor := w("w3", "default", "docker")
	poor.Refuses = map[string]string{"sums": "has no API_KEY"}
	of := func(list ...queue.Presence) []queue.Presence { return list }
	var many []queue.Presence
	for n := range 7 {
		p := poor
		p.Worker = fmt.Sprintf("p%d", n)
		many = append(many, p)
	}
	for name, c := range map[string]struct {
		workers []queue.Presence
		pool    string
		class   queue.Class
		want    []string
	}{
		"nobody":                       {nil, "default", "docker", []string{"no worker is connected yet"}},
		"another pool":                 {of(w("w1", "default", "docker")), "gpus", "docker", []string{"no worker serves pool gpus"}},
		"another runtime":              {of(w("w1", "default", "subprocess")), "default", "docker", []string{"no worker offers docker"}},
		"another runtime in this pool": {of(w("w1", "default", "subprocess"), w("w2", "gpus", "docker")), "default", "docker", []string{"no worker of pool default offers docker"}},
		"one of two needs":             {of(w("w1", "default", "docker")), "default", "docker-gpu", []string{"no worker offers gpu"}},
		"neither of two needs":         {of(w("w1", "default", "subprocess")), "default", "docker-gpu", []string{"no worker offers docker and gpu"}},
		"both needs, on two workers":   {of(w("w1", "default", "docker"), w("w2", "default", "gpu")), "default", "docker-gpu", []string{"no worker offers docker and gpu together"}},
		"one that serves it":           {of(w("w1", "default", "docker"), held, poor, leaving), "default", "docker", nil},
		"one that leaves":              {of(leaving, w("w1", "default", "subprocess")), "default", "docker", []string{"every worker that offers docker is stopping"}},
		"what keeps each": {of(held, poor, leaving), "default", "docker", []string{
			"worker w2 takes no work: free disk is low; available memory is low", "worker w3 has no API_KEY",
		}},
		"too many to name": {many, "default", "docker", []string{
			"worker p0 has no API_KEY", "worker p1 has no API_KEY", "worker p2 has no API_KEY", "worker p3 has no API_KEY",
			"worker p4 has no API_KEY", "and 2 more take none of it either",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := fleet.HeldUp(c.workers, queue.Run{ID: "sums", Pool: c.pool, Class: c.class})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if got := fleet.Slots(of(w("w1", "default", "docker"), held, leaving, w("w4", "gpus", "docker")), "default", "docker"); got != 4 {
		t.Errorf("%d slots, want 4", got)
	}
}
