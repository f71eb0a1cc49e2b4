// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/netcheck"
)

// verdicts holds what was found about engines, by their ids: all runtimes of a process
// that use one engine share it.
var verdicts struct {
	sync.Mutex
	of map[string]netcheck.Result
}

// checkNetworks tries which policies the engine really keeps.
func (r *Runtime) checkNetworks(ctx context.Context, engineID string, m *machine) error {
	key := r.engine.DaemonHost() + " " + engineID
	verdicts.Lock()
	defer verdicts.Unlock()
	found, ok := verdicts.of[key]
	if !ok {
		var err error
		if found, err = r.tryNetworks(ctx); err != nil {
			return err
		}
		if verdicts.of == nil {
			verdicts.of = map[string]netcheck.Result{}
		}
		verdicts.of[key] = found
	}
	m.policies, m.switches = found.Policies, found.Switch
	for policy, why := range found.Why {
		m.why[string(policy)] = why
	}
	return nil
}

// tryNetworks makes the check's containers as ours, so that a sweep finds what a crash
// leaves of them.
func (r *Runtime) tryNetworks(ctx context.Context) (netcheck.Result, error) {
	e, err := r.newEstate(runtime.NewName(), runtime.Labels{ExpiresAt: time.Now().Add(time.Hour).UTC()})
	if err != nil {
		return netcheck.Result{}, err
	}
	found, err := netcheck.Run(ctx, r.engine.Client, netcheck.Options{
		Subnets: r.subnets, Labels: e.mark(),
		Box: func() (*container.Config, *container.HostConfig) { return plan{}.configs() },
	})
	if err != nil {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), r.cfg.Close, errBudget)
		defer cancel()
		if left := r.destroyEstate(ctx, "", e.Nonce); left != nil {
			e.release() // the record stays, so that it is swept
			return found, errors.Join(err, left)
		}
	}
	e.forget()
	return found, err
}
