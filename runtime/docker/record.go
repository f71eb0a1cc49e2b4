// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

const (
	recordVersion = 1
	recordMax     = 1 << 20
	recordName    = "owner.json"
	keptName      = "kept.json"
	boxesName     = "boxes" // the directory of the records
)

// record says whose a sandbox is. It is there before anything is created on the engine.
type record struct {
	Version int            `json:"version"`
	Store   string         `json:"store"`
	Name    string         `json:"name"`
	Nonce   string         `json:"nonce"`
	Host    string         `json:"host"`
	PID     int            `json:"pid"` // for people: the lock tells whether the owner lives
	Created time.Time      `json:"created"`
	Labels  runtime.Labels `json:"labels"`
}

// estate is a record with its directory: <dir>/boxes/<name>@<nonce>. As long as the owner
// lives, the directory is locked (flock), which dies with the process however that ends.
type estate struct {
	record
	path string
	lock *os.File // nil where somebody else is the owner
}

// newEstate makes a record and its lock. Nobody else knows its nonce.
func (r *Runtime) newEstate(name string, labels runtime.Labels) (_ *estate, err error) {
	labels.Store = r.cfg.Store
	var nonce [12]byte
	_, _ = rand.Read(nonce[:]) // never fails
	e := &estate{record: record{
		Version: recordVersion, Store: r.cfg.Store, Name: name, Nonce: hex.EncodeToString(nonce[:]), Host: hostID(),
		PID: os.Getpid(), Created: time.Now().UTC(), Labels: labels,
	}}
	e.path = filepath.Join(r.cfg.Dir, boxesName, name+"@"+e.Nonce)
	if err := os.Mkdir(e.path, 0o700); err != nil {
		return nil, fmt.Errorf("owner's record: %w", err)
	}
	defer func() {
		if err != nil {
			e.forget()
		}
	}()
	if e.lock, err = lockDir(e.path); err != nil {
		return nil, fmt.Errorf("owner's record: %w", err)
	}
	if e.lock == nil {
		return nil, fmt.Errorf("owner's record %s: it was just made, and somebody has its lock", e.path)
	}
	return e, writeJSON(filepath.Join(e.path, recordName), e.record)
}

// forget removes the record, when all that it tells of is gone.
func (e *estate) forget() {
	_ = os.Remove(filepath.Join(e.path, keptName))
	_ = os.Remove(filepath.Join(e.path, recordName))
	_ = os.Remove(e.path)
	e.release()
}

// release gives up ownership. A child that is being forked may have a copy of the
// descriptor for a moment, so closing is not enough.
func (e *estate) release() {
	if e.lock != nil {
		_ = unix.Flock(int(e.lock.Fd()), unix.LOCK_UN)
		e.lock.Close()
		e.lock = nil
	}
}

// lockDir takes the lock of a directory; nil where somebody has it.
func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	// Whoever looks whether it is locked has it for an instant.
	for range 10 {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// readEstate finds the record that a label names, without its lock. The label is checked:
// it is data from the engine, and everybody who may use the engine can write one.
func readEstate(labels map[string]string) (*estate, error) {
	e := &estate{path: labels[labelRecord]}
	name, nonce, ok := strings.Cut(filepath.Base(e.path), "@")
	if !ok || !filepath.IsAbs(e.path) || filepath.Base(filepath.Dir(e.path)) != boxesName ||
		name != labels[labelName] || nonce != labels[labelNonce] {
		return nil, fmt.Errorf("label %s is %q: not one that we wrote", labelRecord, e.path)
	}
	if err := readJSON(filepath.Join(e.path, recordName), &e.record); err != nil {
		return nil, err
	}
	if e.Version != recordVersion || e.Name != name || e.Nonce != nonce || e.Store != labels[labelStore] {
		return nil, fmt.Errorf("owner's record %s: not one that we wrote for this sandbox", e.path)
	}
	return e, nil
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	next := path + ".new"
	if err := os.WriteFile(next, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

func readJSON(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, recordMax))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// hostID tells machines apart that share an engine. Its parts are no secrets, but a hash
// is shorter and can't be mistaken for an address.
var hostID = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	id, _ := os.ReadFile("/etc/machine-id")
	sum := sha256.Sum256([]byte(name + "\x00" + string(id)))
	return hex.EncodeToString(sum[:8])
})

func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
