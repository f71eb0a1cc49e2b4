// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidemill/tidemill/queue"
)

func TestParseID(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want queue.ID
		err  string
	}{
		{in: "abc.1.1", want: queue.ID{Trial: "abc", Epoch: 1, Release: 1}},
		{in: "a_B-9.12.345", want: queue.ID{Trial: "a_B-9", Epoch: 12, Release: 345}},
		{in: "", err: "want <trial>.<epoch>.<release>"},
		{in: "abc.1", err: "want <trial>.<epoch>.<release>"},
		{in: "abc.1.1.1", err: "want <trial>.<epoch>.<release>"},
		{in: "abc.x.1", err: `"x" is not a number`},
		{in: "abc.1.99999999999999999999", err: "is not a number"},
		{in: "abc.0.1", err: "epoch 0: want 1 or more"},
		{in: "abc.1.0", err: "release 0: want 1 or more"},
		{in: "abc.01.1", err: "want the number as it is written: 1"},
		{in: "abc.+1.1", err: "want the number as it is written: 1"},
		{in: ".1.1", err: "want one or more of A-Z a-z 0-9 _ -"},
		{in: "a b.1.1", err: "want one or more of A-Z a-z 0-9 _ -"},
		{in: "AZaz09_-.1.1", want: queue.ID{Trial: "AZaz09_-", Epoch: 1, Release: 1}},
		{in: "a\n.1.1", err: "want one or more of A-Z a-z 0-9 _ -"},
		{in: "é.1.1", err: "want one or more of A-Z a-z 0-9 _ -"},
		// The neighbours of what is allowed.
		{in: "@.1.1", err: "want one or more of A-Z a-z 0-9 _ -"},
		{in: "[.1.1", err: "want one or more of A-Z a-z 0-9 _ -"},
		{in: "`.1.1", err: "want one or more of A-Z a-z 0-9 _ -"},
		{in: "{.1.1", err: "want one or more of A-Z a-z 0-9 _ -"},
		{in: "/.1.1", err: "want one or more of A-Z a-z 0-9 _ -"},
		{in: ":.1.1", err: "want one or more of A-Z a-z 0-9 _ -"},
	} {
		got, err := queue.ParseID(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("ParseID(%q) error = %v, want one that says %q", tt.in, err, tt.err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("ParseID(%q): error %v, (-want +got)\n%s", tt.in, err, diff)
		}
	}
}

// FuzzParseID: whatever is accepted is written back as it was read, so that no
// two spellings name the same job.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"a.1.1", "0f.12.3", "a.01.1", "a.+1.1", "a..1", "a.1.1\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := queue.ParseID(s)
		if err != nil {
			return
		}
		if got := id.String(); got != s {
			t.Fatalf("ParseID(%q).String() = %q", s, got)
		}
	})
}

func TestClass(t *testing.T) {
	for _, tt := range []struct {
		needs []string
		want  queue.Class
		err   string
	}{
		{needs: []string{"docker"}, want: "docker"},
		{needs: []string{"gpu", "docker", "gpu"}, want: "docker-gpu"},
		{needs: nil, err: "no needs given"},
		{needs: []string{""}, err: "want one or more of a-z 0-9"},
		{needs: []string{"GPU"}, err: "want one or more of a-z 0-9"},
		{needs: []string{"a-b"}, err: "want one or more of a-z 0-9"},
		{needs: []string{"a.b"}, err: "want one or more of a-z 0-9"},
	} {
		got, err := queue.NewClass(tt.needs...)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("NewClass(%q) error = %v, want one that says %q", tt.needs, err, tt.err)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("NewClass(%q) = %q, %v, want %q", tt.needs, got, err, tt.want)
		}
	}
	for _, bad := range []queue.Class{"", "gpu-docker", "a-a", "A", "a-", "a.b", "*", ">"} {
		if bad.Validate() == nil {
			t.Errorf("class %q is accepted", bad)
		}
	}
}

func TestClassServedBy(t *testing.T) {
	for _, tt := range []struct {
		class  queue.Class
		offers []string
		want   bool
	}{
		{"docker", []string{"docker"}, true},
		{"docker-gpu", []string{"gpu", "docker", "x"}, true},
		{"docker-gpu", []string{"docker"}, false},
		{"docker", nil, false},
		{"", []string{"docker"}, false},
		{"gpu", []string{"gp", "gpux"}, false},
	} {
		if got := tt.class.ServedBy(tt.offers...); got != tt.want {
			t.Errorf("%q served by %q = %v, want %v", tt.class, tt.offers, got, tt.want)
		}
	}
}

// A class that NewClass made is valid, and does not depend on the order or the
// repeats of its needs.
func TestClassIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs := rapid.SliceOfN(rapid.StringMatching(`[a-z0-9]{1,3}`), 1, 6).Draw(t, "needs")
		class, err := queue.NewClass(needs...)
		if err != nil {
			t.Fatal(err)
		}
		if err := class.Validate(); err != nil {
			t.Fatal(err)
		}
		again, err := queue.NewClass(append(rapid.Permutation(needs).Draw(t, "shuffled"), needs...)...)
		if err != nil || again != class {
			t.Fatalf("%q, %v, want %q", again, err, class)
		}
		if !class.ServedBy(needs...) {
			t.Fatalf("%q is not served by its own needs %q", class, needs)
		}
	})
}

func TestCheckJobs(t *testing.T) {
	good := queue.Job{ID: queue.ID{Trial: "a", Epoch: 1, Release: 1}}
	checked, err := queue.CheckJobs("r", []queue.Job{good})
	if err != nil || checked[0].Run != "r" {
		t.Fatalf("CheckJobs = %v, %v, want the run filled in", checked, err)
	}
	foreign, fat, bad := good, good, good
	foreign.Run = "other"
	fat.Body = make([]byte, queue.MaxBody+1)
	bad.Epoch = 0
	for name, j := range map[string]queue.Job{"foreign run": foreign, "fat body": fat, "no epoch": bad} {
		if _, err := queue.CheckJobs("r", []queue.Job{good, j}); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s: error = %v, want ErrInvalid", name, err)
		}
	}
}
