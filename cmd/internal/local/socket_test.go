// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/cmd/internal/progress"
)

var snapshot = progress.Snapshot{
	Since: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), Slots: 4,
	Runs:    map[string]progress.Counts{"r": {Total: 3, Done: 1, Passed: 1, Unscored: map[string]int{}}},
	Running: []progress.Running{{Run: "r", TaskID: "HumanEval/0", TrialID: "t", Attempt: 1, Phase: "agent"}},
}

func TestClientsAreAnswered(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("deep-and-deeper/", 12))
	for name, root := range map[string]string{"a short path": t.TempDir(), "a path that is too long for a socket": deep} {
		t.Run(name, func(t *testing.T) {
			d := acquire(t, root)
			defer d.Release()
			if len(root) > maxSocketPath {
				if _, err := os.Stat(openFiles); err != nil {
					t.Skip("long paths need /proc")
				}
			}
			stop, err := d.Serve(func() progress.Snapshot { return snapshot })
			if err != nil {
				t.Fatal(err)
			}
			var clients sync.WaitGroup
			for range 8 {
				clients.Go(func() {
					got, err := Ask(t.Context(), root)
					if err != nil {
						t.Error(err)
						return
					}
					if diff := cmp.Diff(&snapshot, got); diff != "" {
						t.Errorf("snapshot (-want +got):\n%s", diff)
					}
				})
			}
			clients.Wait()
			stop()
			if _, err := Ask(t.Context(), root); !errors.Is(err, ErrNoOwner) {
				t.Errorf("after the end: %v; want %v", err, ErrNoOwner)
			}
			if _, err := os.Lstat(d.path(socketName)); !errors.Is(err, os.ErrNotExist) {
				t.Error("the socket is still there")
			}
		})
	}
}

// A relative directory is the same one.
func TestAskByARelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	d := acquire(t, "data")
	defer d.Release()
	stop, err := d.Serve(func() progress.Snapshot { return snapshot })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := Ask(t.Context(), "data"); err != nil {
		t.Error(err)
	}
}

// What a killed owner left neither answers nor is in the way of the next.
func TestAStaleSocket(t *testing.T) {
	root := t.TempDir()
	d := acquire(t, root)
	defer d.Release()
	l, err := net.Listen("unix", d.path(socketName))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if _, err := Ask(t.Context(), root); !errors.Is(err, ErrNoOwner) {
		t.Fatalf("a socket that nobody listens on: %v; want %v", err, ErrNoOwner)
	}
	stop, err := d.Serve(func() progress.Snapshot { return snapshot })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := Ask(t.Context(), root); err != nil {
		t.Error(err)
	}
}

func TestNobodyToAsk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, root := range map[string]string{
		"no directory": filepath.Join(t.TempDir(), "nowhere"), "no socket": t.TempDir(), "a file": file,
		"a long path to nothing": filepath.Join(t.TempDir(), strings.Repeat("x", 120)),
	} {
		if _, err := Ask(t.Context(), root); !errors.Is(err, ErrNoOwner) {
			t.Errorf("%s: %v; want %v", name, err, ErrNoOwner)
		}
	}
}

// Who may read a data directory, but not what its owner keeps for himself, finds nobody there.
func TestAnothersSocket(t *testing.T) {
	if !noOwner(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}) {
		t.Error("an owner who may not be asked is in the way")
	}
	if noOwner(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EIO)}) {
		t.Error("any error is taken for nobody")
	}
}
