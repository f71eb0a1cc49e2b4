// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
)

// process is one of the engine's list, with ids as the engine's machine has them.
type process struct{ pid, parent, session int }

// processes lists the living ones of the container. Zombies don't count: they have ended,
// and PID 1 reaps them.
func (s *Sandbox) processes(ctx context.Context) ([]process, error) {
	e := s.rt.engine
	top, err := quick(ctx, e, "top", func(ctx context.Context) (container.TopResponse, error) {
		return e.ContainerTop(ctx, s.box.ID, []string{"-eo", "pid,ppid,sid,stat,args"})
	})
	if err != nil {
		return nil, err
	}
	var list []process
	for _, row := range top.Processes {
		if len(row) < 4 {
			return nil, fmt.Errorf("docker: top: a row is %q: want pid, ppid, sid, stat and args", row)
		}
		if strings.HasPrefix(row[3], "Z") || strings.HasPrefix(row[3], "X") {
			continue
		}
		var p process
		for i, into := range []*int{&p.pid, &p.parent, &p.session} {
			if *into, err = strconv.Atoi(row[i]); err != nil {
				return nil, fmt.Errorf("docker: top: %w", err)
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// alone reports whether PID 1 is all that lives in the container.
func (s *Sandbox) alone(ctx context.Context) (bool, error) {
	state, err := s.rt.engine.state(ctx, s.box.ID)
	if err != nil {
		return false, err
	}
	list, err := s.processes(ctx)
	if err != nil {
		return false, err
	}
	return len(list) == 1 && list[0].pid == state.Pid, nil
}
