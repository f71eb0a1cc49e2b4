// SPDX-License-Identifier: Apache-2.0

package dirstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A link in the place of a file isn't brought to disk for it, nor is the bundle taken.
func TestTakesNoLinks(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	dir := t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "index.json"), nil, 0o600),
		os.Symlink("index.json", filepath.Join(dir, "agent.log")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.TakeDir(t.Context(), "b/", dir, []string{"agent.log", "index.json"}); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("error %v, want %v", err, syscall.ELOOP)
	}
	if _, err := os.Lstat(filepath.Join(dir, "agent.log")); err != nil {
		t.Errorf("the directory isn't where it was: %v", err)
	}
	wantListed(t, s)
}
