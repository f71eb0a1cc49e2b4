// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// listed is what List says of the only sandbox.
func listed(t *testing.T, rt *Runtime) runtime.Resource {
	t.Helper()
	all, err := rt.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("List: %+v, %v; want one", all, err)
	}
	return all[0]
}

// Who goes on with a kept sandbox and dies leaves it kept.
func TestACrashInAKeptSandbox(t *testing.T) {
	rt := newRuntime(t, Config{Root: t.TempDir()})
	spec := testSpec("kept")
	spec.Labels.ExpiresAt = time.Now().Add(time.Hour)
	sb, err := tryOpen(t, rt, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := rt.Attach(t.Context(), sb.Handle())
	if err != nil {
		t.Fatal(err)
	}
	again.(*Sandbox).estate.release() // what the kernel does for the dead
	if r := listed(t, rt); !r.Kept || r.Live {
		t.Errorf("%+v; want it kept, and nobody's", r)
	}
	third, err := rt.Attach(t.Context(), sb.Handle())
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := entriesOf(t, rt.cfg.Root); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A program can't make its sandbox outlive the expiry, nor another one's note keep it.
func TestWhatIsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		expires time.Duration
		nonce   func(*Sandbox) string
	}{
		"a note of another sandbox": {time.Hour, func(*Sandbox) string { return "0123456789ab" }},
		"a note after its time":     {-time.Second, func(sb *Sandbox) string { return sb.estate.Nonce }},
	} {
		t.Run(name, func(t *testing.T) {
			rt := newRuntime(t, Config{Root: t.TempDir()})
			spec := testSpec("xy")
			spec.Labels.ExpiresAt = time.Now().Add(c.expires)
			sb, err := tryOpen(t, rt, spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := (kept{Version: recordVersion, Nonce: c.nonce(sb), At: time.Now()}).write(sb.estate.lock); err != nil {
				t.Fatal(err)
			}
			sb.estate.release() // its owner dies
			if r := listed(t, rt); r.Kept {
				t.Errorf("listed as kept: %+v", r)
			}
			heir := open(t, rt, "xy") // the name is free
			closeSandbox(t, heir)
		})
	}
}

// A sandbox whose workdir was replaced is not the one that was kept.
func TestAttachToAReplacedWorkdir(t *testing.T) {
	rt := newRuntime(t, Config{Root: t.TempDir()})
	sb := open(t, rt, "xy")
	if err := sb.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(rt.cfg.Root, "xy")
	if err := os.Rename(work, work+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Attach(t.Context(), sb.Handle()); !errors.Is(err, runtime.ErrLost) {
		t.Errorf("without its workdir: %v, want %v", err, runtime.ErrLost)
	}
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Attach(t.Context(), sb.Handle()); !errors.Is(err, runtime.ErrLost) {
		t.Errorf("with another workdir: %v, want %v", err, runtime.ErrLost)
	}
}

func TestAttachToWhatIsNoSandboxOfOurs(t *testing.T) {
	rt := newRuntime(t, Config{Root: t.TempDir()})
	for name, h := range map[string]runtime.Handle{
		"of another runtime": {Runtime: "docker", Kind: kindWorkdir, ID: filepath.Join(rt.cfg.Root, "xy")},
		"of another root":    {Runtime: Type, Kind: kindWorkdir, ID: "/elsewhere/x"},
		"in the making":      {Runtime: Type, Kind: kindStaging, ID: filepath.Join(rt.cfg.Root, "x@new-1")},
		"no name":            {Runtime: Type, Kind: kindWorkdir, ID: filepath.Join(rt.cfg.Root, "..x")},
	} {
		if _, err := rt.Attach(t.Context(), h); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := rt.Attach(t.Context(), runtime.Handle{Runtime: Type, Kind: kindWorkdir, ID: filepath.Join(rt.cfg.Root, "gone")}); !errors.Is(err, runtime.ErrLost) {
		t.Errorf("what is gone: %v, want %v", err, runtime.ErrLost)
	}
}
