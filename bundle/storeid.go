// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Layout is the version of the keys of a store, as described in [Keys].
const Layout = 1

// ReadIdentity reads who a store is. [ErrNotFound] when nothing was ever written to
// it. A layout newer than [Layout] is refused.
func ReadIdentity(ctx context.Context, s Store) (StoreRecord, error) {
	rec, err := ReadRecord[StoreRecord](ctx, s, StoreKey)
	switch {
	case err != nil:
		return StoreRecord{}, fmt.Errorf("identity of store %s: %w", s.URL(), err)
	case rec.Layout > Layout:
		return StoreRecord{}, fmt.Errorf("store %s has layout %d, this version knows %d: use a newer tidemill", s.URL(), rec.Layout, Layout)
	case rec.Layout < 1 || rec.StoreUUID == "":
		return StoreRecord{}, fmt.Errorf("store %s: %s names no layout or no uuid", s.URL(), StoreKey)
	}
	return rec, nil
}

// OpenIdentity reads who a store is, and makes a new store somebody. Of several that
// do so at once one decides, and all get its answer.
func OpenIdentity(ctx context.Context, s Store) (StoreRecord, error) {
	rec, err := ReadIdentity(ctx, s)
	if err == nil || !errors.Is(err, ErrNotFound) {
		return rec, err
	}
	if err := checkNew(ctx, s); err != nil {
		return StoreRecord{}, err
	}
	mine := StoreRecord{SchemaVersion: SchemaVersion, StoreUUID: NewUUID(), Layout: Layout, CreatedAt: time.Now().UTC()}
	created := CreateRecord(ctx, s, StoreKey, mine)
	if created == nil {
		return mine, nil
	}
	// Somebody was faster, or our answer was lost: what is there counts.
	rec, err = ReadIdentity(ctx, s)
	if errors.Is(err, ErrNotFound) {
		return StoreRecord{}, fmt.Errorf("create identity of store %s: %w", s.URL(), created)
	}
	return rec, err
}

// checkNew refuses to make somebody new of a store that holds runs: their trials have
// ids of the identity that is lost.
func checkNew(ctx context.Context, s Store) error {
	for info, err := range s.List(ctx, RunsPrefix) {
		if err != nil {
			return fmt.Errorf("identity of store %s: %w", s.URL(), err)
		}
		// Somebody may have made the identity and begun a run since we looked.
		if _, err := ReadIdentity(ctx, s); !errors.Is(err, ErrNotFound) {
			return nil
		}
		return fmt.Errorf("store %s holds runs (%s) but no %s: put that object back, or use another place", s.URL(), info.Key, StoreKey)
	}
	return nil
}
