// SPDX-License-Identifier: Apache-2.0

package dirstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
)

const (
	processes = 4
	raceKeys  = 100
	countEach = 25
)

// TestProcessesRaceToCreate: each key has one winner among processes.
func TestProcessesRaceToCreate(t *testing.T) {
	root := t.TempDir()
	winner := map[string]string{}
	for i, lines := range together(t, "race", root) {
		for _, line := range lines {
			key, pid, _ := strings.Cut(line, " ")
			if other, twice := winner[key]; twice {
				t.Errorf("process %d and another both created %s (%s, %s)", i, key, pid, other)
			}
			winner[key] = pid
		}
	}
	if len(winner) != raceKeys {
		t.Errorf("%d keys were created, want %d", len(winner), raceKeys)
	}
	s := open(t, root)
	defer s.Close()
	for key, pid := range winner {
		if got := body(t, s, key); got != pid {
			t.Errorf("%s is of process %s, created by %s", key, got, pid)
		}
	}
}

func childRace(ctx context.Context, root string) error {
	s, err := openAtSignal(root)
	if err != nil {
		return err
	}
	for i := range raceKeys {
		key := fmt.Sprintf("race/%d", i)
		_, err := s.Create(ctx, key, fmt.Append(nil, os.Getpid()))
		if err == nil {
			fmt.Println(key, os.Getpid())
		} else if !errors.Is(err, bundle.ErrExists) {
			return err
		}
	}
	return s.Close()
}

// TestProcessesCount: no increment by swap is lost among processes.
func TestProcessesCount(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	defer s.Close()
	if _, err := s.Create(t.Context(), "n", []byte("0")); err != nil {
		t.Fatal(err)
	}
	together(t, "count", root)
	if got, want := body(t, s, "n"), fmt.Sprint(processes*countEach); got != want {
		t.Errorf("counted to %s, want %s", got, want)
	}
}

func childCount(ctx context.Context, root string) error {
	s, err := openAtSignal(root)
	if err != nil {
		return err
	}
	for done := 0; done < countEach; {
		r, info, err := s.Get(ctx, "n")
		if err != nil {
			return err
		}
		var n int
		_, err = fmt.Fscan(r, &n)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
		_, err = s.Swap(ctx, "n", info.Version, fmt.Append(nil, n+1))
		if err == nil {
			done++
		} else if !errors.Is(err, bundle.ErrChanged) {
			return err
		}
	}
	return s.Close()
}

// together starts processes, lets them go at one signal, and returns what each said.
func together(t *testing.T, name, root string) [][]string {
	t.Helper()
	all := make([]*child, processes)
	for i := range all {
		all[i] = start(t, name, root)
	}
	for _, c := range all {
		if got := c.line(t); got != "ready" {
			t.Fatal(got)
		}
	}
	for _, c := range all {
		_ = c.stdin.Close()
	}
	said := make([][]string, processes)
	for i, c := range all {
		said[i] = c.lines(t)
	}
	return said
}

func openAtSignal(root string) (*dirstore.Store, error) {
	s, err := dirstore.Open(root, dirstore.Options{})
	if err != nil {
		return nil, err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return s, err
}

// TestSmallDisk fills a disk, and makes it read-only, in a mount namespace of its own.
func TestSmallDisk(t *testing.T) {
	c := start(t, "small-disk", t.TempDir(), func(cmd *exec.Cmd) {
		id := func(host int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: host, Size: 1}} }
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: id(os.Getuid()),
			GidMappings: id(os.Getgid()),
		}
	})
	lines := c.lines(t)
	if len(lines) > 0 && strings.HasPrefix(lines[0], "skip") {
		t.Skip(lines[0])
	}
	if len(lines) != 1 || lines[0] != "done" {
		t.Errorf("the child said %q", lines)
	}
}

func childSmallDisk(ctx context.Context, dir string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		fmt.Println("skip: a small disk can't be mounted here:", err)
		return nil
	}
	s, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		return err
	}
	if err := s.Put(ctx, "k", strings.NewReader("old"), 3); err != nil {
		return err
	}
	// More than fits: the old object stays and the space is free again.
	big := strings.Repeat("x", 3<<20)
	if err := s.Put(ctx, "k", strings.NewReader(big), int64(len(big))); !errors.Is(err, bundle.ErrNoSpace) {
		return fmt.Errorf("put of too much: error %v, want %w", err, bundle.ErrNoSpace)
	}
	if err := s.Put(ctx, "half", strings.NewReader(big[:1<<20]), 1<<20); err != nil {
		return fmt.Errorf("after a put that failed there is less room: %w", err)
	}
	if _, err := s.Create(ctx, "created", []byte(big[:1<<20])); !errors.Is(err, bundle.ErrNoSpace) {
		return fmt.Errorf("create of too much: error %v, want %w", err, bundle.ErrNoSpace)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".tmp", "*")); len(left) > 0 {
		return fmt.Errorf("left behind: %q", left)
	}
	// A full disk is refused when it is opened.
	if err := os.WriteFile(filepath.Join(dir, "filler"), []byte(big), 0o600); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("filling the disk: %w", err)
	}
	if _, err := dirstore.Open(dir, dirstore.Options{}); !errors.Is(err, bundle.ErrNoSpace) {
		return fmt.Errorf("open on a full disk: error %v, want %w", err, bundle.ErrNoSpace)
	}
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		return err
	}
	if err := s.Close(); err != nil { // an open file that can be written to is in the way
		return err
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return err
	}
	if err := s.Put(ctx, "k", strings.NewReader("new"), 3); !errors.Is(err, bundle.ErrDenied) {
		return fmt.Errorf("put on a read-only disk: error %v, want %w", err, bundle.ErrDenied)
	}
	if _, err := dirstore.Open(dir, dirstore.Options{}); !errors.Is(err, bundle.ErrDenied) {
		return fmt.Errorf("open on a read-only disk: error %v, want %w", err, bundle.ErrDenied)
	}
	fmt.Println("done")
	return nil
}
