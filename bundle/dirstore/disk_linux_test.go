// SPDX-License-Identifier: Apache-2.0

package dirstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
)

func init() { children["small-disk"] = childSmallDisk }

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
