// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/manifest"
)

// imageless refuses tasks that need an image where the run's runtime has none on any
// machine, so that somebody who submits learns it and not only who runs.
func imageless(run *manifest.Run) TaskCheck {
	return func(t *manifest.Task) error {
		what := t.Image
		if t.Build != nil {
			what = "built from " + t.Build.Dockerfile
		}
		if run.Runtime.Type != "subprocess" || what == "" {
			return nil
		}
		return fmt.Errorf("task %q needs an image (%s), and runtime subprocess has none; use runtime.type docker", t.ID, what)
	}
}

// maxRefused is how many tasks that can't run are told.
const maxRefused = 10

func (s *seenTasks) refusals() error {
	told := s.refused[:min(len(s.refused), maxRefused)]
	err := errors.Join(told...)
	if more := len(s.refused) - len(told); more > 0 {
		err = errors.Join(err, fmt.Errorf("and %d more tasks like these", more))
	}
	if err != nil {
		err = &RefusedTasksError{File: s.run.File, Err: err}
	}
	return err
}

// RefusedTasksError says which selected tasks can't run where the run is to run.
type RefusedTasksError struct {
	File string
	Err  error
}

func (e *RefusedTasksError) Error() string {
	return e.File + ": " + strings.ReplaceAll(e.Err.Error(), "\n", "\n"+e.File+": ")
}

// Unwrap returns what the checks said.
func (e *RefusedTasksError) Unwrap() error { return e.Err }
