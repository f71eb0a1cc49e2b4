// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/runtime"
)

func hex16(n uint64) string { return fmt.Sprintf("%016x", n) }

// TestDisk: whichever way the engine has, the workdir is bounded, has the image's files,
// and is the agent's.
func TestDisk(t *testing.T) {
	l := newLab(t)
	rt := l.runtime(t)
	sb := l.open(t, rt, func(s *runtime.Spec) {
		s.Workdir, s.Resources.Disk = "/home", 4<<20 // a directory of the image that isn't empty
		s.Users = map[runtime.Phase]string{runtime.Agent: "1000"}
	})
	if got := sh(t, sb, "ls -d "+testenv.TestUser+"; stat -c %u . "+testenv.TestUser); got != testenv.TestUser+"\n1000\n1000\n" {
		t.Errorf("the workdir has %q", got)
	}
	if exit, out := try(t, sb, "dd if=/dev/zero of=big bs=1M count=8"); exit.OK() || !strings.Contains(out, "No space left") {
		t.Errorf("8 MiB on a disk of 4 MiB: exit %+v, %s", exit, out)
	}
	var sentence bool
	for _, s := range rt.Properties().Unprotected {
		sentence = sentence || strings.Contains(s, "resources.disk")
	}
	if inMemory := sb.box.Volume != ""; inMemory != sentence {
		t.Errorf("the disk is in memory: %v; Properties says so: %v", inMemory, sentence)
	}
}

// TestDiskTooSmall: the image's own files must fit.
func TestDiskTooSmall(t *testing.T) {
	l := newLab(t)
	rt := l.runtime(t)
	sb, err := tryOpen(t, rt, l.spec(func(s *runtime.Spec) { s.Workdir, s.Resources.Disk = "/bin", 64<<10 }))
	if err == nil {
		_ = sb.Close(t.Context())
		if sb.box.Volume == "" {
			t.Skip("the engine's storage has quotas, which don't count the image's files")
		}
		t.Fatal("the image's files went onto a disk that is smaller than they are")
	}
	if p := (*runtime.ProvisionError)(nil); !errors.As(err, &p) || !strings.Contains(err.Error(), "resources.disk") {
		t.Errorf("error %v, want one that names resources.disk", err)
	}
}
