// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A note serves one attempt after another and says only what the last of them wrote. One
// that is moved stays what it was, and the next is another file.
func TestNotes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "notes")
	if err := os.MkdirAll(filepath.Join(dir, "left by a crash"), 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := newNotes(dir)
	if err != nil {
		t.Fatal(err)
	}
	write := func(why string) *note {
		t.Helper()
		body, err := unsent{TrialID: "t", Why: why}.encode()
		if err != nil {
			t.Fatal(err)
		}
		f, err := n.write(body)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	says := func(path, want string) {
		t.Helper()
		var u unsent
		body, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(body, &u)
		}
		if err != nil || u.Why != want {
			t.Errorf("%s says %q, %v; want %q", path, u.Why, err, want)
		}
	}
	first := write(strings.Repeat("long ", 100))
	n.drop(first)
	n.drop(nil)
	second, third := write("short"), write("beside it")
	if second.file != first.file {
		t.Error("a file was made though there was one")
	}
	says(second.file.Name(), "short")
	kept := filepath.Join(t.TempDir(), "kept")
	if err := n.move(second, kept); err != nil {
		t.Fatal(err)
	}
	n.drop(write("later"))
	says(kept, "short")
	says(third.file.Name(), "beside it")
	n.drop(third)
	if err := n.move(nil, kept); !errors.Is(err, errNoNote) {
		t.Errorf("no note was moved: %v", err)
	}
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d notes are left", len(left))
	}
}

// What can't be written leaves no file behind, and no note that another attempt would get.
func TestNoteWithoutRoom(t *testing.T) {
	n, err := newNotes(filepath.Join(t.TempDir(), "notes"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := n.write([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.file.Close(); err != nil { // a descriptor that takes no more
		t.Fatal(err)
	}
	n.drop(f)
	if _, err := n.write([]byte("{}")); !errors.Is(err, fs.ErrClosed) {
		t.Fatalf("written all the same: %v", err)
	}
	if left, _ := os.ReadDir(n.dir); len(left) > 0 || len(n.free) > 0 {
		t.Errorf("%d files and %d notes are left", len(left), len(n.free))
	}
}

// A note of another attempt of the trial says nothing about a bundle.
func TestNoteOfAnotherAttempt(t *testing.T) {
	w := &Worker{Config: Config{Dir: t.TempDir()}}
	if err := os.Mkdir(w.unsentDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	u := unsent{Run: "r", TrialID: "t", Attempt: 1, name: "t.2"}
	if err := w.noteUnsent(u); err != nil {
		t.Fatal(err)
	}
	if _, err := w.readUnsent("t.2"); err == nil || !strings.Contains(err.Error(), "attempt 1") {
		t.Errorf("read all the same: %v", err)
	}
	u.Attempt = 2
	if err := w.noteUnsent(u); err != nil {
		t.Fatal(err)
	}
	if _, err := w.readUnsent("t.2"); err != nil {
		t.Error(err)
	}
}
