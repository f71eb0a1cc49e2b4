// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

var (
	_ runtime.Keeper   = (*Sandbox)(nil)
	_ runtime.Attacher = (*Runtime)(nil)
)

// kept is the file beside the owner record of a sandbox that was left on purpose. With
// the sandbox's nonce in it, it can't come from another one; that a program inside could
// write it gains it nothing beyond the expiry of the owner record.
type kept struct {
	Version int          `json:"version"`
	Nonce   string       `json:"nonce"`
	At      time.Time    `json:"at"`
	Spec    runtime.Spec `json:"spec"` // to go on with it as it was
	Options options      `json:"options"`
}

// Keep ends the sandbox's processes and gives up its lock. The directories stay, with a
// file that says that this was meant.
func (s *Sandbox) Keep(ctx context.Context) error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.gone {
		return fmt.Errorf("keep sandbox %s: %w", s.estate.Name, runtime.ErrClosed)
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.cfg.CloseTimeout, errBudget)
	defer cancel()
	idle := s.shut()
	var err error
	if s.onDisk() {
		err = s.unloadDisk(ctx, idle)
	}
	if err == nil {
		err = s.quiet(ctx, idle)
	}
	if err == nil {
		err = s.alive()
	}
	if err == nil {
		err = kept{
			Version: recordVersion, Nonce: s.estate.Nonce, At: time.Now().UTC(), Spec: s.spec, Options: s.options,
		}.write(s.estate.lock)
	}
	if err != nil {
		return fmt.Errorf("keep sandbox %s: %w", s.estate.Name, err)
	}
	s.closeDisk()
	s.groups.close()
	s.estate.release()
	s.gone = true
	return nil
}

// Attach takes the lock of a kept sandbox and goes on with it. What keeps it stays in
// place, so that a crash of the new owner doesn't make it a leftover.
func (r *Runtime) Attach(ctx context.Context, h runtime.Handle) (runtime.Sandbox, error) {
	sb, err := r.attach(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("attach to sandbox %s: %w", filepath.Base(h.ID), err)
	}
	return sb, nil
}

func (r *Runtime) attach(ctx context.Context, h runtime.Handle) (_ *Sandbox, err error) {
	if r.closed.Load() {
		return nil, errRuntimeClosed
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	name := filepath.Base(h.ID)
	if h.Runtime != Type || h.Kind != kindWorkdir || filepath.Dir(h.ID) != r.cfg.Root || runtime.CheckName(name) != nil {
		return nil, fmt.Errorf("%s %s is no sandbox of the subprocess runtime at %s", h.Kind, h.ID, r.cfg.Root)
	}
	root, err := r.claims.openRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	side, err := openDirAt(root, name+sideSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, runtime.ErrLost
	}
	if err != nil {
		return nil, err
	}
	e := &estate{lock: side}
	locked, err := r.claims.lockPatiently(side)
	if err == nil && !locked {
		err = r.claims.conflict(name, side)
	}
	if err != nil {
		side.Close()
		return nil, err
	}
	defer func() {
		if err != nil {
			e.release()
		}
	}()
	k, err := e.readmit(root, name, h.Proof)
	if err != nil {
		return nil, err
	}
	if e.Store != r.cfg.Store {
		return nil, fmt.Errorf("it belongs to store %s, we to %s", e.Store, r.cfg.Store)
	}
	return r.resume(ctx, e, k)
}

// resume makes a sandbox of an estate that was kept, under the same conditions.
func (r *Runtime) resume(ctx context.Context, e *estate, k kept) (*Sandbox, error) {
	env, err := r.environment(runtime.RunSpec{}, k.Options)
	if err == nil {
		err = env.able.checkSpec(k.Spec)
	}
	if err != nil {
		return nil, err
	}
	sb, err := env.furnish(ctx, e, k.Spec)
	if err == nil && sb.onDisk() {
		// It may have been kept with what a grader left beside a full disk.
		if err = sb.makeRoom(ctx, true); err == nil {
			err = sb.loadDisk(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(err, sb.abandon(ctx))
	}
	return sb, nil
}

// readmit reads what an estate's new owner has to know, and checks that it is the one
// that the proof is of.
func (e *estate) readmit(root *directory, name, want string) (k kept, err error) {
	if e.identity, err = identityAt(e.lock, ""); err != nil {
		return k, err
	}
	if e.record, err = readRecord(e.lock, name); errors.Is(err, fs.ErrNotExist) {
		return k, runtime.ErrLost // on its way out
	} else if err != nil {
		return k, err
	}
	if proof(e.identity, e.Nonce) != want {
		return k, fmt.Errorf("%w: another one has its name", runtime.ErrLost)
	}
	if k, err = readKept(e.lock, e.Nonce); errors.Is(err, fs.ErrNotExist) {
		return k, errors.New("nobody kept it: it was left by a process that died")
	} else if err != nil {
		return k, err
	}
	if e.work, err = openForced(root, name); errors.Is(err, fs.ErrNotExist) {
		return k, fmt.Errorf("%w: its workdir was removed", runtime.ErrLost)
	} else if err != nil {
		return k, err
	}
	id, err := identityAt(e.work, "")
	if err == nil && id != e.Workdir {
		err = fmt.Errorf("%w: its workdir was replaced", runtime.ErrLost)
	}
	return k, err
}

// isKept reports whether a sandbox was left on purpose and that time is not over.
func (r record) isKept(side *directory) bool {
	_, err := readKept(side, r.Nonce)
	return err == nil && time.Now().Before(r.Labels.ExpiresAt)
}

const newKeptName = keptName + ".new"

func (k kept) write(side *directory) error {
	data, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	dir := side.fd
	if err := unix.Unlinkat(dir, newKeptName, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%s: %w", newKeptName, err)
	}
	fd, err := createAt(side, newKeptName)
	if err != nil {
		return err
	}
	if err := writeAndClose(fd, append(data, '\n')); err != nil {
		return fmt.Errorf("%s: %w", newKeptName, err)
	}
	return unix.Renameat(dir, newKeptName, dir, keptName)
}

func readKept(side *directory, nonce string) (kept, error) {
	data, err := readFileAt(side, keptName, recordMax)
	if err != nil {
		return kept{}, err
	}
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return kept{}, fmt.Errorf("%s: %w", keptName, err)
	}
	if k.Version != recordVersion || k.Nonce != nonce {
		return kept{}, fmt.Errorf("%s: not one that we wrote for this sandbox", keptName)
	}
	return k, nil
}
