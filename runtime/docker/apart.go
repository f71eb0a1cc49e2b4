// SPDX-License-Identifier: Apache-2.0

package docker

import "context"

// endApart kills the processes of one command and of no other, and reports whether it
// could: the engine gives ids of processes on its own machine, so it must be this one, and
// we must be allowed. A command's are what the engine started, its descendants, and
// whoever is in its session; a process that left the session and lost its parent can't be
// told apart.
func (s *Sandbox) endApart(ctx context.Context, c *command) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, s.rt.cfg.Kill, errBudget)
	defer cancel()
	root, ok := c.root(ctx)
	if !ok {
		return false
	}
	for {
		list, err := s.processes(ctx)
		if err != nil {
			return false
		}
		prey := family(list, root)
		if len(prey) == 0 {
			return true
		}
		for _, pid := range prey {
			if !killHere(pid, s.box.ID) {
				return false
			}
		}
		if pause(ctx, killWait) != nil {
			return false
		}
	}
}

// root is the process that the engine started for a command. A program may have printed
// something before the engine knows its id.
func (c *command) root(ctx context.Context) (pid int, ok bool) {
	for {
		info, err := c.inspect(ctx)
		if err != nil || info.Pid != 0 || !info.Running {
			return info.Pid, err == nil && info.Pid != 0
		}
		if pause(ctx, killWait) != nil {
			return 0, false
		}
	}
}

// family chooses a command's processes from all that live in the box.
func family(list []process, root int) []int {
	in := map[int]bool{}
	for {
		before := len(in)
		for _, p := range list {
			if p.pid == root || p.session == root || in[p.parent] {
				in[p.pid] = true
			}
		}
		if len(in) == before {
			break
		}
	}
	var pids []int
	for _, p := range list {
		if in[p.pid] {
			pids = append(pids, p.pid)
		}
	}
	return pids
}
