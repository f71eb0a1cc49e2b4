// SPDX-License-Identifier: Apache-2.0

package dirstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/dirstore"
)

// TestKilledInTheMiddleOfAPut: the old object stays, nothing else is seen, and what is
// left behind goes a day later.
func TestKilledInTheMiddleOfAPut(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	defer s.Close()
	if err := s.Put(t.Context(), "d/k", strings.NewReader("old"), 3); err != nil {
		t.Fatal(err)
	}
	c := start(t, "half-a-put", root)
	if got := c.line(t); got != "half" {
		t.Fatal(got)
	}
	kill(t, c)

	if got := body(t, s, "d/k"); got != "old" {
		t.Errorf("after the crash the object is %.20q, want old", got)
	}
	wantListed(t, s, "d/k")
	left, err := filepath.Glob(filepath.Join(root, ".tmp", "*"))
	if err != nil || len(left) > 1 {
		t.Fatalf("left behind: %q, error %v; want one file, or none where files need no name", left, err)
	}
	if len(left) == 0 { // as an earlier version, or another file system, would leave it
		left = []string{filepath.Join(root, ".tmp", "1234-half")}
		if err := os.WriteFile(left[0], []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dayAgo := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(left[0], dayAgo, dayAgo); err != nil {
		t.Fatal(err)
	}
	_ = open(t, root).Close()
	if _, err := os.Stat(left[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left behind is still there: %v", err)
	}
}

func childHalfPut(ctx context.Context, root string) error {
	s, err := dirstore.Open(root, dirstore.Options{})
	if err != nil {
		return err
	}
	half := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), stuck{})
	return s.Put(ctx, "d/k", half, 2<<20)
}

// stuck tells the parent that half of the object is written, and waits to be killed.
type stuck struct{}

func (stuck) Read([]byte) (int, error) {
	fmt.Println("half")
	select {}
}

// TestKilledAnywhere kills a process that writes all the time, and looks at what is
// there: every object is whole, and those that were acknowledged are there.
func TestKilledAnywhere(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	defer s.Close()
	for round := range 10 {
		c := start(t, "put-loop", root)
		acked := 0
		for range 5 + round { // events, so that each round dies elsewhere
			acked, _ = strconv.Atoi(c.line(t))
		}
		kill(t, c)
		for info, err := range s.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			b := body(t, s, info.Key)
			if strings.Trim(b, b[:1]) != "" || len(b) != 50_000 {
				t.Errorf("round %d: %s is torn: %d bytes", round, info.Key, len(b))
			}
		}
		for _, key := range []string{"put", "created/" + strconv.Itoa(acked)} {
			_ = body(t, s, key) // must be there
		}
		// The dead process's lock must not be in the way.
		if err := s.Put(t.Context(), "put", bytes.NewReader(bytes.Repeat([]byte("p"), 50_000)), -1); err != nil {
			t.Fatal(err)
		}
		for info := range s.List(t.Context(), "created/") {
			if err := s.Delete(t.Context(), info.Key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func childPutLoop(ctx context.Context, root string) error {
	s, err := dirstore.Open(root, dirstore.Options{})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		b := bytes.Repeat([]byte{byte('a' + i%26)}, 50_000)
		if err := s.Put(ctx, "put", bytes.NewReader(b), int64(len(b))); err != nil {
			return err
		}
		if _, err := s.Create(ctx, "created/"+strconv.Itoa(i), b); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

func kill(t *testing.T, c *child) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // says that it was killed
}

func body(t *testing.T, s bundle.Store, key string) string {
	t.Helper()
	r, _, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
