// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/runtime"
)

// contend looks who has a name. It returns nil when the name may have become free:
// nobody has it any more, or its owner was seen to be dead and what he left is gone.
func (r *Runtime) contend(ctx context.Context, name string) error {
	info, err := quick(ctx, r.engine, "inspect container", func(ctx context.Context) (container.InspectResponse, error) {
		return r.engine.ContainerInspect(ctx, name)
	})
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	labels := info.Config.Labels
	conflict := &runtime.ConflictError{Name: name, Owner: handle(kindContainer, info.ID), Labels: read(labels)}
	if info.Name != "/"+name {
		return nil // an id that begins like the name
	}
	if labels[labelManaged] != Type || labels[labelStore] != r.cfg.Store || labels[labelName] != name {
		return conflict
	}
	if isLive(labels, time.Now()) || isKept(labels, time.Now()) {
		return conflict
	}
	// With its lock, two who want the name don't both take over, nor one what the other
	// has just made: that has another nonce.
	dead, err := readEstate(labels)
	switch {
	case err == nil:
		if dead.lock, err = lockDir(dead.path); err != nil && !notThere(err) {
			return err
		}
		if dead.lock == nil && err == nil {
			return conflict
		}
	case labels[labelHost] == hostID() && !notThere(err):
		return conflict // its record can't be read
	}
	if err := r.destroyEstate(ctx, info.ID, labels[labelNonce]); err != nil {
		if dead != nil {
			dead.release()
		}
		return fmt.Errorf("take over %s from a dead owner: %w", name, err)
	}
	if dead != nil {
		dead.forget()
	}
	return nil
}
