// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// estate is what one sandbox has on disk.
type estate struct {
	record
	identity identity   // of the side directory
	lock     *directory // the side directory, locked; its descriptor is the ownership
	work     *directory // the workdir, open so that its inode is given to no other one
}

func (e *estate) handle(root string) runtime.Handle {
	return runtime.Handle{
		Runtime: Type, Kind: kindWorkdir, ID: filepath.Join(root, e.Name), Proof: proof(e.identity, e.Nonce),
	}
}

func (e *estate) path(root string) string { return filepath.Join(root, e.Name) }

// quarry is by what the estate's processes are known.
func (e *estate) quarry(root string) quarry {
	path := filepath.Join(root, e.Name)
	return quarry{
		mark: markVar + "=" + e.Nonce + ".",
		dirs: []string{path, path + sideSuffix, path + oldInfix + e.Nonce},
	}
}

// depose takes the names away from an estate whose owner may be alive, so that he
// knows the reason when the processes die, and returns what the side directory is
// called now. Where that fails they are as good as before.
func (e *estate) depose(root *directory, base string) string {
	remains := e.Name + oldInfix + e.Nonce
	if same, err := isIdentity(root, base, e.identity); err != nil || !same {
		return base
	}
	if err := renameNew(root, base, root, remains); err != nil {
		return base
	}
	if same, err := isIdentity(root, e.Name, e.Workdir); err == nil && same {
		_ = renameNew(root, e.Name, e.lock, workName)
	}
	return remains
}

// demolish removes the estate, whose side directory is called base: the record last,
// so that what an interruption leaves still says whose it is. What is not there, or is
// somebody else's, is left alone.
func (e *estate) demolish(ctx context.Context, root *directory, base string) error {
	same, err := isIdentity(root, e.Name, e.Workdir)
	if err == nil && !same && base == e.Name+sideSuffix && !exists(e.lock, workName) && exists(root, e.Name) {
		// The workdir got its name once, and the side directory still has its own and is
		// ours: what is there instead was put there by the sandbox's own programs.
		same, err = isIdentity(root, base, e.identity)
	}
	if err == nil && same {
		err = removeAt(ctx, root, e.Name)
	}
	return errors.Join(err, e.demolishSide(ctx, root, base))
}

func (e *estate) demolishSide(ctx context.Context, root *directory, base string) error {
	same, err := isIdentity(root, base, e.identity)
	if err != nil || !same {
		return err
	}
	if err := removeInside(ctx, e.lock, recordName); err != nil {
		return err
	}
	if err := unix.Unlinkat(e.lock.fd, recordName, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove the owner record of %s: %w", e.Name, err)
	}
	err = unlinkEmpty(root, base)
	if err != nil {
		if same, idErr := isIdentity(root, base, e.identity); idErr == nil && !same {
			return nil // the next owner was so quick to take the empty directory's place
		}
	}
	return err
}

// release gives up ownership.
func (e *estate) release() {
	if e.lock != nil {
		unlockSide(e.lock)
		e.lock.Close()
	}
	if e.work != nil {
		e.work.Close()
	}
}
