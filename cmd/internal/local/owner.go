// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/app"
)

// Owner is who holds the lock, as it says itself.
type Owner struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// BusyError says that a data directory has an owner.
type BusyError struct {
	Dir   string
	Owner Owner
}

func (e *BusyError) Error() string {
	who := "another process"
	if e.Owner.PID != 0 {
		who = fmt.Sprintf("%s (process %d, since %s)", e.Owner.Command, e.Owner.PID, e.Owner.Since.Local().Format(time.DateTime))
	}
	return fmt.Sprintf("%s is in use by %s", e.Dir, who)
}

// UnusableError says that a path can't be a data directory.
type UnusableError struct {
	Dir string
	Err error
}

func (e *UnusableError) Error() string {
	switch {
	case errors.Is(e.Err, syscall.ENOTDIR):
		return fmt.Sprintf("%s can't be a data directory: it or something above it is a file", e.Dir)
	case errors.Is(e.Err, os.ErrExist), errors.Is(e.Err, syscall.ELOOP):
		return fmt.Sprintf("%s can't be a data directory: it is a symlink that leads nowhere", e.Dir)
	case errors.Is(e.Err, os.ErrPermission), errors.Is(e.Err, syscall.EROFS):
		return fmt.Sprintf("%s can't be a data directory: this user may not write there", e.Dir)
	}
	cause := e.Err
	if pe, ok := errors.AsType[*os.PathError](cause); ok {
		cause = pe.Err // the path is named already
	}
	return fmt.Sprintf("%s can't be a data directory: %v", e.Dir, cause)
}

// Unwrap returns the cause.
func (e *UnusableError) Unwrap() error { return e.Err }

// Explain adds to an error of [Acquire] what to do next. flag is the one that named the
// directory.
func Explain(err error, flag string) error {
	if busy, ok := errors.AsType[*BusyError](err); ok {
		if flag == "data" {
			return app.Hint(err, "look how far it is with tidemill status --data %s; wait for it, or choose another directory with --data", busy.Dir)
		}
		return app.Hint(err, "choose another directory with --%s", flag)
	}
	if _, ok := errors.AsType[*UnusableError](err); ok {
		return app.Usage(app.Hint(err, "choose another directory with --%s", flag))
	}
	return err
}

// lock takes the lock of a data directory and says who has it.
func lock(path, dir, command string) (*os.File, error) {
	for try := 0; ; try++ {
		f, err := lockOnce(path, dir)
		if busy, ok := errors.AsType[*BusyError](err); ok && try < deadTries && isDead(busy.Owner.PID) {
			// A child that the dead owner was about to start holds the lock until it runs
			// its program, which is a matter of milliseconds.
			time.Sleep(deadWait)
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := sign(f, command); err != nil {
			f.Close()
			return nil, fmt.Errorf("data directory %s: %w", dir, err)
		}
		return f, nil
	}
}

// How long the lock of an owner that is dead is waited for.
const (
	deadTries = 40
	deadWait  = 25 * time.Millisecond
)

func isDead(pid int) bool { return pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func lockOnce(path, dir string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &UnusableError{dir, err}
	}
	// flock dies with the process, however it dies.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s can't be locked: %w", dir, err)
		}
		busy := &BusyError{Dir: dir}
		_ = json.NewDecoder(io.LimitReader(f, 4096)).Decode(&busy.Owner) // it may not have said yet
		return nil, busy
	}
	return f, nil
}

func sign(f *os.File, command string) error {
	body, err := json.Marshal(Owner{PID: os.Getpid(), Command: command, Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(body, '\n'), 0)
	return err
}
