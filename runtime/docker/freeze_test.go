// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"testing"

	"github.com/docker/docker/api/types/container"
)

// What the engine believes to be paused is asked again, and goes on when it isn't any more.
func TestThawed(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t))
	if err := l.cli.ContainerPause(t.Context(), sb.box.ID); err != nil {
		t.Fatal(err)
	}
	asked := 0
	made, err := thawed(t.Context(), func() (container.ExecCreateResponse, error) {
		asked++
		made, err := l.cli.ContainerExecCreate(t.Context(), sb.box.ID, container.ExecOptions{Cmd: []string{"true"}})
		if asked == 1 {
			if err == nil {
				t.Error("a paused container takes an exec")
			}
			if err := l.cli.ContainerUnpause(t.Context(), sb.box.ID); err != nil {
				t.Error(err)
			}
		}
		return made, err
	})
	if err != nil || made.ID == "" || asked < 2 {
		t.Errorf("asked %d times: %q, %v", asked, made.ID, err)
	}
	if got := sh(t, sb, "echo goes on"); got != "goes on\n" {
		t.Errorf("%q", got)
	}
}
