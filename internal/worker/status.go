// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"

	"github.com/tidemill/tidemill/internal/health"
)

// Status is what a worker says of itself.
type Status struct {
	Worker  string   `json:"worker"`
	Version string   `json:"version,omitempty"`
	Pool    string   `json:"pool"`
	Offers  []string `json:"offers"`
	Slots   int      `json:"slots"`
	// Running trials have a slot, Uploading ones have left theirs.
	Running   int `json:"running"`
	Uploading int `json:"uploading"`
	// Begun is how many attempts it has begun.
	Begun int `json:"begun"`
	// SpoolBytes are of bundles on their way to the store, PackBytes of unpacked packs.
	SpoolBytes int64 `json:"spool_bytes"`
	PackBytes  int64 `json:"pack_bytes"`
	// Unsent bundles are kept here only.
	Unsent   int    `json:"unsent"`
	Draining bool   `json:"draining"`
	Holds    []Hold `json:"holds"`
}

// Status returns how the worker is now.
func (w *Worker) Status() Status {
	running, _, _, _ := w.load.look()
	uploading, spool, _ := w.room.look()
	s := Status{
		Worker: w.Name, Version: w.Version, Pool: w.Pool, Offers: w.offers(), Slots: w.Slots,
		Running: running, Uploading: uploading, Begun: w.quota.count(), SpoolBytes: spool, PackBytes: w.shared.files.Bytes(),
		Draining: w.draining.Load(), Holds: w.gate.list(),
	}
	if s.Holds == nil {
		s.Holds = []Hold{}
	}
	if list, err := w.listUnsent(); err == nil {
		s.Unsent = len(list)
	}
	return s
}

// Stuck returns what of the worker hangs, as reasons to start it anew: a slot that asks
// for work, a heartbeat, the watch over disk and memory.
func (w *Worker) Stuck() []health.Reason {
	var reasons []health.Reason
	for _, s := range w.dog.Stuck() {
		reasons = append(reasons, health.Reason{Check: "stuck", Detail: s.String()})
	}
	return reasons
}

const checkDraining = "draining"

// Unready returns why the worker takes no new work, none where it does.
func (w *Worker) Unready() []health.Reason {
	var reasons []health.Reason
	if w.draining.Load() {
		reasons = append(reasons, health.Reason{Check: checkDraining, Detail: "the worker is stopping"})
	}
	for _, h := range w.gate.list() {
		reasons = append(reasons, health.Reason{Check: h.What, Detail: h.Why})
	}
	if count, bytes, waiting := w.room.look(); waiting > 0 {
		reasons = append(reasons, health.Reason{Check: "spool", Detail: fmt.Sprintf(
			"%d slots wait for %d bundles of %d bytes together to be uploaded", waiting, count, bytes)})
	}
	return reasons
}
