// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

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

// countTries is how often the number of processes is asked for before it counts. Those that
// have just ended are in it until they are reaped.
const countTries = 25

// alone reports whether PID 1 is all that lives in the container. The engine's list is made
// of two looks, one for the ids and one for what they are: processes that fork and die all
// the time can be missing from both. So an empty list is believed only if the kernel's
// count says the same.
func (s *Sandbox) alone(ctx context.Context) (bool, error) {
	state, err := s.rt.engine.state(ctx, s.box.ID)
	if err != nil {
		return false, err
	}
	for try := range countTries {
		list, err := s.processes(ctx)
		if err != nil {
			return false, err
		}
		if len(list) != 1 || list[0].pid != state.Pid {
			return false, nil
		}
		n, err := s.count(ctx)
		if err != nil {
			return false, err
		}
		// 0 is an engine that doesn't count: then a few lists have to agree.
		if n == 1 || n == 0 && try == 4 {
			return true, nil
		}
		select {
		case <-time.After(killWait):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return false, nil
}

// count asks how many processes and threads the kernel has in the container, zombies among
// them; 0 where it isn't told.
func (s *Sandbox) count(ctx context.Context) (uint64, error) {
	e := s.rt.engine
	return quick(ctx, e, "stats", func(ctx context.Context) (uint64, error) {
		r, err := e.ContainerStatsOneShot(ctx, s.box.ID)
		if err != nil {
			return 0, err
		}
		defer r.Body.Close()
		var stats container.StatsResponse
		if err := json.NewDecoder(r.Body).Decode(&stats); err != nil {
			return 0, fmt.Errorf("docker: stats: %w", err)
		}
		return stats.PidsStats.Current, nil
	})
}
