// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// markVar is in the environment of every command: the sandbox's nonce, a dot and the
// number of the command. Descendants inherit it.
const markVar = "TIDEMILL_SANDBOX"

// quarry is by what processes are known.
type quarry struct {
	mark string   // how the entry of markVar begins, its name included
	dirs []string // where no process of our user has its current directory but these
}

// reaper ends processes.
//
// What a PID namespace would do in one step (kill its init) is done here by looking:
// kill the groups, kill whatever the process table shows, look again, until a look
// shows nothing. A process that forks on the way is found by the next look.
type reaper struct {
	timeout time.Duration
	table   *table
}

var errBudget = errors.New("the time that this may take is over")

// end returns when none of the processes is alive, nor any in the groups, of which ids
// are some more. The members are looked for one by one, because a process that was
// killed shows neither mark nor directory while it dies.
func (r *reaper) end(ctx context.Context, q quarry, g *groups, ids ...int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.timeout, errBudget)
	defer cancel()
	for {
		alive, err := r.table.find(q, append(g.kill(), ids...))
		if err != nil {
			return fmt.Errorf("end processes: %w", err)
		}
		if len(alive) == 0 {
			g.prune()
			return nil
		}
		pids := make([]int, len(alive))
		for i, p := range alive {
			pids[i] = p.pid
			p.kill()
		}
		for _, p := range alive {
			p.await(ctx)
			p.close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("processes %v are alive although they were killed: %w", pids, context.Cause(ctx))
		}
	}
}

// groups are the process groups of a sandbox that may have members.
type groups struct {
	mu  sync.Mutex
	all []*group
}

func (g *groups) add(one *group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, one)
}

// reaped is told when a group's leader was waited for: his number may belong to
// somebody else from now on, unless the group has other members.
func (g *groups) reaped(one *group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one.reaped = true
	g.pruneLocked()
}

func (g *groups) prune() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pruneLocked()
}

func (g *groups) pruneLocked() {
	g.all = slices.DeleteFunc(g.all, func(one *group) bool {
		if !one.reaped || one.populated() {
			return false
		}
		one.close()
		return true
	})
}

// kill kills all groups and returns the ids of those that still had members.
func (g *groups) kill() []int {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var pinned []int
	for _, one := range g.all {
		if one.kill() {
			pinned = append(pinned, one.id)
		}
	}
	return pinned
}

func (g *groups) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.all {
		one.close()
	}
	g.all = nil
}
