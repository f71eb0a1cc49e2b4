// SPDX-License-Identifier: Apache-2.0

package debugcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/manifest"
)

// namedTasks is how many tasks an error names.
const namedTasks = 10

// find looks for the task that a word means in the packs of a run.
func find(ctx context.Context, run *manifest.Run, load manifest.LoadOptions, word string) (target, error) {
	wanted := targets(word)
	var found *target
	var known []string
	tasks := 0
	for _, dir := range run.Packs {
		pack, err := manifest.OpenPack(dir, run.PackOptions(load))
		if err != nil {
			return target{}, app.Usage(err)
		}
		for ref, err := range pack.Tasks(ctx) {
			if ctx.Err() != nil {
				return target{}, context.Cause(ctx)
			}
			meant := slices.ContainsFunc(wanted, func(t target) bool { return t.task == ref.ID })
			if err != nil && (ref.ID == "" || meant) {
				return target{}, app.Usage(err)
			}
			if err != nil {
				continue // another task that can't run is nobody's trouble here
			}
			tasks++
			for i, t := range wanted {
				switch {
				case ref.ID != t.task:
				case i == 0:
					return t, nil // the whole word is a task's id
				default:
					found = &t
				}
			}
			if len(known) < namedTasks {
				known = append(known, fmt.Sprintf("%q", ref.ID))
			}
		}
	}
	if found != nil {
		return *found, nil
	}
	if tasks > len(known) {
		known = append(known, fmt.Sprintf("and %d more", tasks-len(known)))
	}
	return target{}, app.Usage(app.Hint(fmt.Errorf("%s has no task %q", run.File, word), "it has %s", strings.Join(known, ", ")))
}
