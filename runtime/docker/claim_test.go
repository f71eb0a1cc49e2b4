// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/runtime"
)

// foreign makes a container that no owner of ours has.
func (l *lab) foreign(t *testing.T, name string, labels map[string]string) string {
	t.Helper()
	made, err := l.cli.ContainerCreate(t.Context(), &container.Config{Image: l.image, Labels: labels}, nil, nil, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := l.cli.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true})
		if err != nil && !isGone(err) {
			t.Error(err)
		}
	})
	return made.ID
}

// TestNamesOfOthers: only what is ours and whose owner was seen to be dead is taken over.
func TestNamesOfOthers(t *testing.T) {
	l := newLab(t)
	rt := l.runtime(t)
	ours := func(name string, edit map[string]string) map[string]string {
		m := map[string]string{
			labelManaged: Type, labelStore: testStore, labelName: name, labelNonce: "0123", labelHost: hostID(),
			labelRecord:  filepath.Join(l.dir, boxesName, name+"@0123"),
			labelExpires: time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano),
		}
		for k, v := range edit {
			m[k] = v
		}
		return m
	}
	for what, test := range map[string]struct {
		edit  map[string]string
		taken bool
		live  bool
	}{
		"nobody's":                  {map[string]string{labelManaged: ""}, true, false},
		"another store's":           {map[string]string{labelStore: "another"}, true, false},
		"another sandbox's":         {map[string]string{labelName: "another"}, true, false},
		"another machine's":         {map[string]string{labelHost: "another"}, true, true},
		"unseen files'":             {map[string]string{labelRecord: "/nonexistent/boxes/x@0123"}, true, true},
		"another machine's, of old": {map[string]string{labelHost: "another", labelExpires: "2026-01-02T03:04:05Z"}, false, false},
		"a dead owner's":            {nil, false, false},
	} {
		spec := l.spec()
		id := l.foreign(t, spec.Name, ours(spec.Name, test.edit))
		list, err := rt.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if r.Handle.ID == id && r.Live != test.live {
				t.Errorf("%s: listed with Live %v, want %v", what, r.Live, test.live)
			}
		}
		sb, err := tryOpen(t, rt, spec)
		conflict := (*runtime.ConflictError)(nil)
		_, lookErr := l.cli.ContainerInspect(t.Context(), id)
		if test.taken {
			if !errors.As(err, &conflict) || conflict.Owner != handle(kindContainer, id) || lookErr != nil {
				t.Errorf("%s: error %v, and %v; want a conflict that leaves it alone", what, err, lookErr)
			}
		} else if err != nil || !isGone(lookErr) {
			t.Errorf("%s: error %v, and %v; want it taken over", what, err, lookErr)
		}
		if err == nil {
			if err := sb.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if test.edit[labelStore] != "" {
			if err := rt.Destroy(t.Context(), handle(kindContainer, id)); err == nil {
				t.Errorf("%s: Destroy removed it", what)
			}
		}
		_ = l.cli.ContainerRemove(t.Context(), id, container.RemoveOptions{Force: true})
	}
}

// TestLeftNetworksAndVolumes are listed when their container is gone, and can be destroyed.
func TestLeftNetworksAndVolumes(t *testing.T) {
	l := newLab(t)
	rt := l.runtime(t)
	sb, err := tryOpen(t, rt, l.spec(withNetwork, func(s *runtime.Spec) { s.Resources.Disk = 1 << 20 }))
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.engine.removeContainer(t.Context(), sb.box.ID); err != nil {
		t.Fatal(err)
	}
	count := func() map[string]int {
		list, err := rt.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		for _, r := range list {
			if r.Name == sb.Name() {
				n[r.Handle.Kind]++
			}
		}
		return n
	}
	want := map[string]int{kindNetwork: 1}
	if sb.box.Volume != "" {
		want[kindVolume] = 1
	}
	if got := count(); len(got) != len(want) || got[kindNetwork] != 1 {
		t.Errorf("listed are %v, want %v", got, want)
	}
	if err := rt.Destroy(t.Context(), handle(kindNetwork, sb.box.Network)); err != nil {
		t.Error(err)
	}
	if got := count(); len(got) != 0 {
		t.Errorf("after Destroy of the network, with which all of the sandbox goes, listed are %v", got)
	}
	if err := sb.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTidy removes records that belong to nothing, and no others.
func TestTidy(t *testing.T) {
	dir := t.TempDir()
	rt, err := New(Config{Dir: dir, Store: testStore})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	old := time.Now().Add(-3 * time.Hour)
	make := func(name string, expires time.Time, locked bool) string {
		e, err := rt.newEstate(name, runtime.Labels{ExpiresAt: expires})
		if err != nil {
			t.Fatal(err)
		}
		if locked {
			t.Cleanup(e.forget)
		} else {
			e.release()
		}
		if err := os.Chtimes(e.path, old, old); err != nil {
			t.Fatal(err)
		}
		return e.path
	}
	gone := make("expired", old, false)
	stay := []string{make("owned", old, true), make("valid", time.Now().Add(time.Hour), false)}
	rt.tidy(time.Now())
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("%s: %v, want it gone", gone, err)
	}
	for _, path := range stay {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestToolPutIn is how it goes on an engine that doesn't see our files.
func TestToolPutIn(t *testing.T) {
	l := newLab(t)
	rt := l.runtime(t)
	rt.tools.unseen()
	sb := l.open(t, rt, func(s *runtime.Spec) { s.Resources.Pids = 64 })
	if sb.box.Mounted {
		t.Fatal("the tool is mounted")
	}
	// A program may replace what isn't mounted.
	sh(t, sb, "echo '#!/bin/true' > /tmp-tool; chmod 755 /tmp-tool; mv /tmp-tool "+toolPath+"; sleep 1000 >/dev/null 2>&1 &")
	if err := sb.EndProcesses(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := l.top(t, sb); len(list) != 1 {
		t.Errorf("docker top has %q", list)
	}
	if n, _ := sb.restarting(); n != 0 {
		t.Errorf("it was started again %d times", n)
	}
	sh(t, sb, "(f() { while :; do f & done; }; f) >/dev/null 2>&1 & rm "+toolPath)
	if err := sb.EndProcesses(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.onlyPID1(t, sb)
}

// TestImageOfNothing has no shell, no users and no directory but the root.
func TestImageOfNothing(t *testing.T) {
	l := newLab(t)
	l.image = testenv.BoxImage(t, l.cli)
	sb := l.open(t, l.runtime(t))
	if got := sb.Path(runtime.Workdir); got != "/app" {
		t.Errorf("the workdir is %s", got)
	}
	for _, user := range []string{"", "4321", "4321:8765"} {
		exit, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"/box", "help"}, User: user})
		if err != nil || !exit.OK() {
			t.Errorf("as user %q: exit %+v, error %v", user, exit, err)
		}
	}
	_, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"sh", "-c", "true"}})
	if start := (*runtime.StartError)(nil); !errors.As(err, &start) {
		t.Errorf("a shell that there isn't: %v, want a StartError", err)
	}
	_, err = sb.Exec(t.Context(), runtime.Command{Argv: []string{"/box", "help"}, User: "somebody"})
	if u := (*runtime.UnsupportedError)(nil); !errors.As(err, &u) || u.Feature != "user" {
		t.Errorf("a user that there isn't: %v, want an UnsupportedError", err)
	}
	if err := copyIn(t, sb, runtime.Tests, runtime.CopyOptions{Fresh: true}, "a/b", "x"); err != nil {
		t.Error(err)
	}
	if files, _ := copyOut(t, sb, runtime.Tests, ".", runtime.CopyLimits{}); files["a/b"] != "x" {
		t.Errorf("copied out: %v", files)
	}
	l.onlyPID1(t, sb)
}
