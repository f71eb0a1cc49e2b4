// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// Live is the open sandbox of an attempt, for people who look into it while the attempt
// goes on. Its methods may be called from any goroutine, also after the end: then
// [runtime.ErrClosed] is what comes of it.
type Live struct {
	box     runtime.Sandbox
	user    string
	env     map[string]string
	expires time.Time
	entered atomic.Bool
}

// Handle names the sandbox.
func (l *Live) Handle() runtime.Handle { return l.box.Handle() }

// ExpiresAt is when the sandbox is anybody's to remove, if it is there by then.
func (l *Live) ExpiresAt() time.Time { return l.expires }

// Env is what the agent's program finds in its environment, without the secrets.
func (l *Live) Env() map[string]string { return maps.Clone(l.env) }

// Exec runs a command beside those of the attempt, as the agent's user and with its
// environment, without the secrets. The attempt is flagged for it: what somebody else
// did in its sandbox may be why it ended as it did.
func (l *Live) Exec(ctx context.Context, cmd runtime.Command) (runtime.Exit, error) {
	l.entered.Store(true)
	env := l.Env()
	maps.Copy(env, cmd.Env)
	cmd.Env, cmd.User = env, cmp.Or(cmd.User, l.user)
	return l.box.Exec(ctx, cmd)
}

// opened tells that the sandbox is open.
func (a *attempt) opened(spec runtime.Spec) {
	if a.OnOpen == nil {
		return
	}
	a.step = &a.Task.Steps[0] // of several steps each has an instruction and a row at the same place
	env := a.agentEnv()
	for _, name := range a.hidden {
		delete(env, name)
	}
	a.shown = &Live{
		box: a.box, user: a.Task.Users[string(runtime.Agent)], env: env, expires: spec.Labels.ExpiresAt,
	}
	a.step = nil // none has begun
	a.OnOpen(a.shown)
}

// leave gives the sandbox over to people who want to look into it, where that is asked
// for and its runtime can do it; else it closes it.
func (a *attempt) leave(ctx context.Context) error {
	keeper, ok := a.box.(runtime.Keeper)
	if a.Keep <= 0 || !ok || a.dead {
		return a.box.Close(ctx)
	}
	return keeper.Keep(ctx)
}
