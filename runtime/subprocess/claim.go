// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// claims makes estates below a root, and takes over what the dead left.
type claims struct {
	root   string // absolute, without symlinks
	store  string
	reap   *reaper
	spares *spares
}

func (c claims) openRoot() (*directory, error) { return openDir(c.root) }

// claim makes an estate of the name, or says who has it.
func (c claims) claim(ctx context.Context, name string, labels runtime.Labels) (*estate, error) {
	root, err := c.openRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	e, base, err := c.stage(root, name, labels)
	if err != nil {
		return nil, err
	}
	published, err := c.publish(ctx, root, e, base)
	if err != nil {
		// What we staged is ours alone; what was published already is ours as well.
		ctx := context.WithoutCancel(ctx)
		if published {
			base = name + sideSuffix
		}
		err = errors.Join(err, e.demolish(ctx, root, base))
		e.release()
		return nil, err
	}
	return e, nil
}

// stage builds an estate under a name that nobody else uses.
func (c claims) stage(root *directory, name string, labels runtime.Labels) (_ *estate, base string, err error) {
	var nonce [12]byte
	_, _ = rand.Read(nonce[:]) // never fails
	e := &estate{record: record{
		Version: recordVersion, Store: c.store, Name: name, Nonce: hex.EncodeToString(nonce[:]),
		PID: os.Getpid(), Created: time.Now().UTC(), Labels: labels,
	}}
	base = name + newInfix + e.Nonce
	if err := unix.Mkdirat(root.fd, base, 0o755); err != nil {
		return nil, "", fmt.Errorf("make %s: %w", filepath.Join(c.root, base), err)
	}
	defer func() {
		if err != nil {
			if e.lock != nil {
				err = errors.Join(err, removeInside(context.Background(), e.lock))
			}
			err = errors.Join(err, unlinkEmpty(root, base))
			e.release()
		}
	}()
	if e.lock, err = openDirAt(root, base); err != nil {
		return nil, "", err
	}
	e.lock.name = name + sideSuffix // to be
	if ok, err := lockSide(e.lock, unix.LOCK_EX); err != nil || !ok {
		return nil, "", errors.Join(err, fmt.Errorf("lock %s: it was just made, and somebody has it", base))
	}
	if err := unix.Mkdirat(e.lock.fd, workName, 0o755); err != nil {
		return nil, "", fmt.Errorf("make %s of %s: %w", workName, base, err)
	}
	if err := c.makeTmp(e.lock); err != nil {
		return nil, "", fmt.Errorf("make %s of %s: %w", tmpName, base, err)
	}
	if e.identity, err = identityAt(e.lock, ""); err != nil {
		return nil, "", err
	}
	if e.work, err = openDirAt(e.lock, workName); err != nil {
		return nil, "", err
	}
	if e.Workdir, err = identityAt(e.work, ""); err != nil {
		return nil, "", err
	}
	return e, base, e.record.write(e.lock)
}

// makeTmp makes the temporary directory. Programs may have several users; the root is this
// one's alone.
func (c claims) makeTmp(side *directory) error {
	tmp, err := c.spares.mkdir(side, tmpName)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fchmod(tmp.fd, 0o1777), tmp.Close())
}

// publish gives an estate its names. It returns whether the side directory has its
// own by now.
func (c claims) publish(ctx context.Context, root *directory, e *estate, base string) (bool, error) {
	fd := root.fd
	for {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		// An empty directory in the way is replaced: it is the last that is left of an
		// estate whose demolition was interrupted.
		err := unix.Renameat(fd, base, fd, e.Name+sideSuffix)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTDIR) {
			return false, fmt.Errorf("publish %s: %w", e.Name, err)
		}
		if err := c.contend(ctx, root, e.Name); err != nil {
			return false, err
		}
	}
	if err := renameNew(e.lock, workName, root, e.Name); err != nil {
		if errors.Is(err, unix.EEXIST) {
			err = c.conflict(e.Name, nil) // it has no owner record, so nobody may touch it
		}
		return true, err
	}
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	return true, nil
}

// contend returns nil when the name may have become free, because its owner was dead
// and what he left is gone.
func (c claims) contend(ctx context.Context, root *directory, name string) error {
	side, err := openDirAt(root, name+sideSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return c.conflict(name, nil)
	case err != nil:
		return err
	}
	defer side.Close()
	locked, err := c.lockPatiently(side)
	if err != nil {
		return err
	}
	if !locked {
		return c.conflict(name, side)
	}
	defer unlockSide(side)
	id, err := identityAt(side, "")
	if err != nil {
		return err
	}
	if same, err := isIdentity(root, name+sideSuffix, id); err != nil || !same {
		return err // it was removed between opening and locking
	}
	rec, err := readRecord(side, name)
	if errors.Is(err, fs.ErrNotExist) && unlinkEmpty(root, name+sideSuffix) == nil {
		return nil
	}
	if err != nil || rec.Store != c.store {
		return c.conflict(name, side)
	}
	if rec.isKept(side) {
		return c.conflict(name, side)
	}
	dead := &estate{record: rec, identity: id, lock: side}
	if err := c.endOther(ctx, dead, true); err != nil {
		return fmt.Errorf("take over %s from a dead owner: %w", name, err)
	}
	if err := dead.demolish(ctx, root, name+sideSuffix); err != nil {
		return fmt.Errorf("take over %s from a dead owner: %w", name, err)
	}
	return nil
}

// lockPatiently isn't fooled by those who lock for a moment to see whether they can
// (List does), or by a fork that holds a copy of a lock that was just given up.
func (c claims) lockPatiently(side *directory) (bool, error) {
	for range 10 {
		if ok, err := lockSide(side, unix.LOCK_EX); ok || err != nil {
			return ok, err
		}
		time.Sleep(time.Millisecond)
	}
	return false, nil
}

// conflict describes who has the name, as far as it can be read.
func (c claims) conflict(name string, side *directory) error {
	e := &runtime.ConflictError{
		Name:  name,
		Owner: runtime.Handle{Runtime: Type, Kind: kindWorkdir, ID: filepath.Join(c.root, name)},
	}
	if side == nil {
		return e
	}
	rec, err := readRecord(side, name)
	if err != nil {
		return e
	}
	if id, err := identityAt(side, ""); err == nil {
		e.Owner.Proof = proof(id, rec.Nonce)
	}
	e.Labels = rec.Labels
	return e
}

// unlinkEmpty removes a directory only when nothing is in it.
func unlinkEmpty(dir *directory, name string) error {
	err := unix.Unlinkat(dir.fd, name, unix.AT_REMOVEDIR)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &fs.PathError{Op: "rmdir", Path: dir.join(name), Err: err}
}
