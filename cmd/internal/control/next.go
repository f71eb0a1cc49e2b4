// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"os"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/internal/producer"
)

// next says what has to be done where a decision that lets trials begin is only written
// down; "" where nothing has.
func (f *Flags) next(o producer.Order, a *producer.Answer) string {
	lets := o.Kind == bundle.ControlResume || o.Kind == bundle.ControlRetry || o.Kind == bundle.ControlLimits
	if a.Queued || !a.Changed || !lets || a.State != producer.StateOpen {
		return ""
	}
	dir, ok := stores.Directory(f.store.Where())
	if _, err := os.Stat(local.HiddenOf(dir)); ok && err == nil {
		data := ""
		if dir != local.DefaultDir {
			data = " --data " + dir
		}
		return fmt.Sprintf("go on with tidemill run --run-id %s%s FILE", a.Run, data)
	}
	if a.Unpublished && f.queue.URL == "" {
		return "name the fleet's queue with --queue or " + app.EnvName("queue") + ": until it is told nothing of this begins"
	}
	return ""
}
