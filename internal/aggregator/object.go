// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"context"
	"fmt"
	"io"

	"github.com/tidemill/tidemill/bundle"
)

// readObject reads an object of at most limit bytes.
func readObject(ctx context.Context, s bundle.Store, key string, limit int64) ([]byte, error) {
	r, _, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", key, err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%s: more than %d bytes", key, limit)
	}
	return body, nil
}
