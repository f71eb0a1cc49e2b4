// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

// eat takes memory until it is killed.
const eat = "tail /dev/zero"

func TestExhausted(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t), func(s *runtime.Spec) {
		s.Resources = runtime.Resources{Memory: 32 << 20, Pids: 32}
	})
	for _, test := range []struct {
		name, script, want string
	}{
		{"nothing", "exit 3", ""},
		{"memory, and dies of it", "exec " + eat, runtime.OutOfMemory},
		{"somebody else's kill", "kill -9 $$", ""},
		{"memory, in a child", eat + " || exit 7", runtime.OutOfMemory},
		{"nothing again", "exit 3", ""},
		{"processes", "for i in $(seq 64); do sleep 5 & done", runtime.OutOfPids},
	} {
		exit, out := try(t, sb, test.script)
		if exit.OK() || exit.Exhausted != test.want || exit.Signal != "" {
			t.Errorf("%s: exit %+v, want it exhausted of %q: %s", test.name, exit, test.want, out)
		}
		if err := sb.EndProcesses(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if exit, _ := try(t, sb, eat+"; exit 0"); !exit.OK() || exit.Exhausted != "" {
		t.Errorf("a program that lives with what its child ran into: exit %+v", exit)
	}
	if err := sb.Alive(t.Context()); err != nil {
		t.Error(err)
	}
}

// A disk that is full when a program failed is what it ran into.
func TestExhaustedDisk(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t), func(s *runtime.Spec) {
		s.Resources = runtime.Resources{Disk: 4 << 20}
	})
	for _, test := range []struct {
		name, script, want string
	}{
		{"nothing", "exit 3", ""},
		{"a file", "dd if=/dev/zero of=big bs=64k", runtime.OutOfDisk},
		{"room again", "rm big; exit 3", ""},
		{"files", "i=0; while : >f$i; do i=$((i+1)); [ $i -lt 200000 ] || exit 0; done 2>/dev/null; exit 1", runtime.OutOfDisk},
	} {
		exit, out := try(t, sb, test.script)
		if exit.OK() || exit.Exhausted != test.want {
			t.Errorf("%s: exit %+v, want it exhausted of %q: %s", test.name, exit, test.want, out)
		}
	}
}

func TestLimitsBind(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t), func(s *runtime.Spec) {
		s.Resources = runtime.Resources{CPUs: 0.5, Memory: 64 << 20, Pids: 40, Files: 99, Shm: 3 << 20}
	})
	info, err := l.cli.ContainerInspect(t.Context(), sb.box.ID)
	if err != nil {
		t.Fatal(err)
	}
	h := info.HostConfig
	if h.NanoCPUs != 5e8 || h.Memory != 64<<20 || h.PidsLimit == nil || *h.PidsLimit != 40 || h.ShmSize != 3<<20 {
		t.Errorf("the engine has other limits: %+v", h.Resources)
	}
	if got := sh(t, sb, "ulimit -n; df -k /dev/shm | tail -1 | awk '{print $2}'"); got != "99\n3072\n" {
		t.Errorf("inside the limits are %q, want 99 files and 3072 KiB of shared memory", got)
	}
}

// TestCapabilities: the engine's default set without NET_RAW and MKNOD, and no way to
// more.
func TestCapabilities(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t))
	const mknod, netRaw = 1 << 27, 1 << 13
	const byDefault = 0xa80425fb
	want := uint64(byDefault &^ (mknod | netRaw))
	got := sh(t, sb, "grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status")
	if want := "CapEff:\t" + hex16(want) + "\nCapBnd:\t" + hex16(want) + "\nNoNewPrivs:\t1\n"; got != want {
		t.Errorf("capabilities %q, want %q", got, want)
	}
	if exit, out := try(t, sb, "mknod /tmp/null c 1 3"); exit.OK() {
		t.Errorf("a device was made: %s", out)
	}
}
