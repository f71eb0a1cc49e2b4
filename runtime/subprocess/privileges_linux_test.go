// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A root inside may do what it wants with its own files and nothing that reaches beyond
// them, and no program gains more.
func TestNoPrivilegesToBeGained(t *testing.T) {
	rt := nestedRuntime(t, Config{})
	sb := openWith(t, rt, nil, nil)
	status := map[string]string{}
	for line := range strings.Lines(sh(t, sb, "cat /proc/self/status")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		status[key] = strings.TrimSpace(value)
	}
	if got := status["NoNewPrivs"]; got != "1" {
		t.Errorf("NoNewPrivs is %q; want 1", got)
	}
	for _, set := range []string{"CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"} {
		caps, err := strconv.ParseUint(status[set], 16, 64)
		if err != nil {
			t.Fatalf("%s is %q: %v", set, status[set], err)
		}
		for name, c := range map[string]int{
			"SYS_ADMIN": unix.CAP_SYS_ADMIN, "SYS_PTRACE": unix.CAP_SYS_PTRACE, "SYS_MODULE": unix.CAP_SYS_MODULE,
			"SYS_RAWIO": unix.CAP_SYS_RAWIO, "SYS_BOOT": unix.CAP_SYS_BOOT,
			"NET_ADMIN": unix.CAP_NET_ADMIN, "NET_RAW": unix.CAP_NET_RAW, "MKNOD": unix.CAP_MKNOD,
			"DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH, "BPF": unix.CAP_BPF,
		} {
			if caps&(1<<c) != 0 {
				t.Errorf("%s has CAP_%s", set, name)
			}
		}
	}
	for _, script := range []string{"mount -t tmpfs none /mnt", "mknod dev c 1 1", "unshare -n true"} {
		if exit, out := try(t, sb, script); exit.OK() {
			t.Errorf("%s: it may: %s", script, out)
		}
	}
}
