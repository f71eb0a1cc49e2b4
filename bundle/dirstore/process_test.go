// SPDX-License-Identifier: Apache-2.0

package dirstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
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
