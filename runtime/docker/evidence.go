// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"fmt"

	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/runtime"
)

// Evidence has the container's state. It has no log: PID 1 is ours and prints nothing,
// and what commands print went to whoever ran them.
func (s *Sandbox) Evidence(ctx context.Context, _ int) (runtime.Evidence, error) {
	s.mu.Lock()
	closed, restarts := s.closed, s.restarts
	s.mu.Unlock()
	if closed {
		return runtime.Evidence{}, fmt.Errorf("sandbox %s: %w", s.estate.Name, runtime.ErrClosed)
	}
	var ev runtime.Evidence
	state, err := s.rt.engine.state(ctx, s.box.ID)
	if err != nil {
		ev.Missing = append(ev.Missing, fmt.Sprintf("How the container is can't be said: %v.", err))
		return ev, nil
	}
	ev.Services = []runtime.ServiceEvidence{serviceEvidence(state, restarts)}
	return ev, nil
}

func serviceEvidence(state *container.State, restarts int) runtime.ServiceEvidence {
	e := runtime.ServiceEvidence{OOMKilled: state.OOMKilled, Restarts: restarts, Log: []byte(stateText(state) + "\n")}
	if !state.Running {
		code := state.ExitCode
		e.ExitCode = &code
	}
	return e
}

// stateText is a state in a line.
func stateText(state *container.State) string {
	text := "container " + string(state.Status)
	if !state.Running {
		text += fmt.Sprintf(", exit code %d", state.ExitCode)
	}
	if state.OOMKilled {
		text += ", killed for want of memory"
	}
	if state.Error != "" {
		text += ": " + state.Error
	}
	return text
}
