// SPDX-License-Identifier: Apache-2.0

package worker

import "strings"

// SpoolDir is where bundles are until they are in the store.
func (w *Worker) SpoolDir() string { return w.spoolDir() }

// InSpool reports whether an entry of the spool belongs to an attempt that goes on, until
// its bundle is stored or set aside. Others are leftovers.
func (w *Worker) InSpool(name string) bool {
	w.liveMu.Lock()
	defer w.liveMu.Unlock()
	for bundle := range w.spools {
		if name == bundle || strings.HasPrefix(name, bundle+".") { // what is made anew after a panic
			return true
		}
	}
	return false
}

func (w *Worker) occupy(bundle string) {
	w.liveMu.Lock()
	defer w.liveMu.Unlock()
	w.spools[bundle] = true
}

func (w *Worker) vacate(bundle string) {
	w.liveMu.Lock()
	defer w.liveMu.Unlock()
	delete(w.spools, bundle)
}
