// SPDX-License-Identifier: Apache-2.0

package netcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/subnet"
)

// Options is what a check needs to know. Zero fields mean their defaults.
type Options struct {
	// Subnets gives the check's network its subnet. Required.
	Subnets *subnet.Pool
	// Labels are put on everything that is made.
	Labels map[string]string
	// Box makes the configuration of a trial's container, all but image, command,
	// network and labels. Required: what is checked is what trials have.
	Box func() (*container.Config, *container.HostConfig)
	// Timeout bounds the check. Default 1 min.
	Timeout time.Duration
	// Cleanup bounds the removal of what was made, which happens whatever was the
	// matter before. Default 1 min.
	Cleanup time.Duration
	// Patience is how long a probe waits for an answer. Default 500 ms.
	Patience time.Duration
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Cleanup = cmp.Or(o.Cleanup, time.Minute)
	o.Patience = cmp.Or(o.Patience, 500*time.Millisecond)
	return o
}

func (o Options) validate() error {
	var errs []error
	if o.Subnets == nil {
		errs = append(errs, errors.New("no pool of subnets"))
	}
	if o.Box == nil {
		errs = append(errs, errors.New("nothing says how a trial's container is made"))
	}
	if o.Timeout < 0 || o.Cleanup < 0 || o.Patience < 0 {
		errs = append(errs, errors.New("a time is negative"))
	}
	return errors.Join(errs...)
}

// Result is what was found.
type Result struct {
	// Policies that hold.
	Policies []runtime.NetworkPolicy
	// Why has a sentence for each of full_internet and no_internet that doesn't.
	Why map[runtime.NetworkPolicy]string
	// Switch says why a box that was taken off its network is not as closed as one that
	// never had any. Empty: it is, so phases may differ in whether they have a network.
	Switch string
}

// Run checks. An error means that the engine couldn't be asked, or that something was
// left behind, and says nothing about policies.
func Run(ctx context.Context, api client.APIClient, o Options) (Result, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return Result{}, fmt.Errorf("check of the network policies: %w", err)
	}
	limit := fmt.Errorf("it took longer than %v", o.Timeout)
	bounded, cancel := context.WithTimeoutCause(ctx, o.Timeout, limit)
	defer cancel()
	l := newLab(api, o)
	seen, err := l.observe(bounded)
	if err != nil && bounded.Err() != nil {
		err = context.Cause(bounded)
	}
	if err = errors.Join(err, l.close(ctx)); err != nil {
		return Result{}, fmt.Errorf("check of the network policies: %w", err)
	}
	return seen.judge(), nil
}
