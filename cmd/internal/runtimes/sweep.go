// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/runtime"
)

// Sweep removes sandboxes of a store whose makers are gone. Living ones, those that are
// kept and didn't expire, and other stores' things stay. Call it when nobody else makes
// sandboxes there.
func Sweep(ctx context.Context, rts map[string]runtime.Runtime, storeUUID string, log zerolog.Logger) error {
	for kind, rt := range rts {
		list, err := rt.List(ctx)
		if err != nil {
			return fmt.Errorf("runtime %s: %w", kind, err)
		}
		for _, r := range list {
			if r.Live || r.Labels.Store != storeUUID || r.Kept && time.Now().Before(r.Labels.ExpiresAt) {
				continue
			}
			log.Info().Str("name", r.Name).Str("runtime", kind).Msg("removing what an earlier process left")
			if err := rt.Destroy(ctx, r.Handle); err != nil {
				return fmt.Errorf("runtime %s: left over sandbox %s: %w", kind, r.Name, err)
			}
		}
	}
	return nil
}
