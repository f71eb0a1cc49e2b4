// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// List returns the sandboxes of the store below the root, those in the making
// included. What has no readable owner record, or another store's, is not ours.
func (r *Runtime) List(ctx context.Context) ([]runtime.Resource, error) {
	root, err := r.claims.openRoot()
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	defer root.Close()
	names, err := root.allNames()
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var found []runtime.Resource
	for _, base := range names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		name, kind, ok := sideOf(base)
		if !ok {
			continue
		}
		side, err := openDirAt(root, base)
		if err != nil {
			continue // gone meanwhile, or not a directory
		}
		if res, ok := r.look(side, name, base, kind); ok {
			found = append(found, res)
		}
		side.Close()
	}
	return found, nil
}

// tidyAge is how old an empty directory is before nobody is filling or emptying it.
const tidyAge = time.Minute

// tidy removes the empty directories that crashes leave in the instants in which a
// sandbox in the making has no record yet, or one that goes has none any more. It
// needs no proof, for it removes nothing that has content. A dry one removes nothing and
// returns the same.
func (c claims) tidy(now time.Time, dry bool) (found []runtime.Pruned, err error) {
	root, err := c.openRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := root.allNames()
	if err != nil {
		return nil, err
	}
	for _, base := range names {
		if spareOf(base) && !dry {
			if err := removeDeadSpares(root, base); err != nil {
				return found, err
			}
		}
		if _, _, ok := sideOf(base); !ok {
			continue
		}
		st, err := statAt(root, base)
		if err != nil || now.Sub(time.Unix(int64(st.Mtim.Sec), 0)) < tidyAge {
			continue
		}
		side, err := openDirAt(root, base)
		if err != nil {
			continue
		}
		free, err := lockSide(side, unix.LOCK_EX)
		_, recordErr := statAt(side, recordName)
		if err == nil && free && errors.Is(recordErr, fs.ErrNotExist) {
			if !dry {
				_ = unlinkEmpty(side, workName)
				_ = unlinkEmpty(side, tmpName)
			}
			if dry && isBare(side) || !dry && unlinkEmpty(root, base) == nil {
				found = append(found, runtime.Pruned{
					Kind: "directory", ID: filepath.Join(c.root, base), Used: time.Unix(int64(st.Mtim.Sec), 0), Why: "it is what a crash left of a sandbox, without a record",
				})
			}
		}
		unlockSide(side)
		side.Close()
	}
	return found, nil
}

// isBare reports whether a side directory has nothing in it but the empty directories that
// it is begun with.
func isBare(side *directory) bool {
	dir, err := openDirAt(side, ".") // what was opened for its lock keeps its place
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.allNames()
	if err != nil {
		return false
	}
	for _, name := range names {
		if name != workName && name != tmpName {
			return false
		}
		sub, err := openDirAt(side, name)
		if err != nil {
			return false
		}
		empty, err := sub.isEmpty()
		sub.Close()
		if err != nil || !empty {
			return false
		}
	}
	return true
}

var _ runtime.Pruner = (*Runtime)(nil)

// Prune removes the empty directories that crashes leave. There are no images.
func (r *Runtime) Prune(_ context.Context, opts runtime.PruneOptions) ([]runtime.Pruned, error) {
	found, err := r.claims.tidy(time.Now(), opts.DryRun)
	if err != nil {
		return nil, fmt.Errorf("subprocess root %s: %w", r.cfg.Root, err)
	}
	return found, nil
}

func (r *Runtime) look(side *directory, name, base, kind string) (runtime.Resource, bool) {
	rec, err := readRecord(side, name)
	if err != nil || rec.Store != r.cfg.Store {
		return runtime.Resource{}, false
	}
	id, err := identityAt(side, "")
	if err != nil {
		return runtime.Resource{}, false
	}
	// A lock that can be shared is nobody's.
	free, err := lockSide(side, unix.LOCK_SH)
	if free {
		unlockSide(side)
	}
	return runtime.Resource{
		Handle: runtime.Handle{
			Runtime: Type, Kind: kind, ID: handleID(r.cfg.Root, name, base, kind), Proof: proof(id, rec.Nonce),
		},
		Name: name, Labels: rec.Labels, Created: rec.Created,
		Live: err == nil && !free, Kept: kind == kindWorkdir && rec.isKept(side),
	}, true
}

// Destroy kills the processes and removes the directories of a sandbox. Whether its
// owner lives is for the caller to ask ([runtime.Resource].Live); a handle that no
// longer fits what has the name means that the sandbox is gone.
func (r *Runtime) Destroy(ctx context.Context, h runtime.Handle) error {
	base := filepath.Base(h.ID)
	if h.Kind == kindWorkdir {
		base += sideSuffix
	}
	name, kind, ok := sideOf(base)
	if h.Runtime != Type || kind != h.Kind || !ok || filepath.Dir(h.ID) != r.cfg.Root {
		return fmt.Errorf("destroy %s %s: not a handle of the subprocess runtime at %s", h.Kind, h.ID, r.cfg.Root)
	}
	// A demolition that has begun should end, so that no half is left.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), r.cfg.CloseTimeout, errBudget)
	defer cancel()
	root, err := r.claims.openRoot()
	if err != nil {
		return fmt.Errorf("destroy %s: %w", name, err)
	}
	defer root.Close()
	side, err := openDirAt(root, base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("destroy %s: %w", name, err)
	}
	defer side.Close()
	// Where the owner is dead, keep others from taking over what is going away.
	locked, err := lockSide(side, unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("destroy %s: %w", name, err)
	}
	if locked {
		defer unlockSide(side)
	}
	rec, err := readRecord(side, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // on its way out
	}
	if err != nil {
		return fmt.Errorf("destroy %s: %w", name, err)
	}
	id, err := identityAt(side, "")
	if err != nil {
		return fmt.Errorf("destroy %s: %w", name, err)
	}
	if proof(id, rec.Nonce) != h.Proof {
		return nil
	}
	if rec.Store != r.cfg.Store {
		return fmt.Errorf("destroy %s: it belongs to store %s, we to %s", name, rec.Store, r.cfg.Store)
	}
	e := &estate{record: rec, identity: id, lock: side}
	if kind == kindWorkdir {
		base = e.depose(root, base)
	}
	err = r.claims.endOther(ctx, e, locked)
	if err == nil {
		err = e.demolish(ctx, root, base)
	}
	if err != nil {
		return fmt.Errorf("destroy %s: %w", name, err)
	}
	return nil
}
