// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

// An agent that leaves its disk full leaves the grader room nevertheless: else it could
// choose to have no verdict.
func TestGraderHasRoomOnAFullDisk(t *testing.T) {
	rt := nestedRuntime(t, Config{})
	needsLimit(t, rt, "disk")
	needsLimit(t, rt, "memory")
	for name, fill := range map[string]string{
		"bytes": "cat /dev/zero >big 2>/dev/null",
		"files": "i=0; while : >f$i; do i=$((i+1)); done 2>/dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			// The disk is nearly all of the memory.
			sb := openWith(t, rt, nil, func(s *runtime.Spec) { s.Resources.Disk, s.Resources.Memory = 24<<20, 32<<20 })
			if got := sh(t, sb, "("+fill+"); rm -f $TMPDIR/x; echo no >$TMPDIR/x 2>/dev/null || echo full"); got != "full\n" {
				t.Fatalf("the agent could write on: %q", got)
			}
			if err := sb.SetPhase(t.Context(), runtime.Grade); err != nil {
				t.Fatal(err)
			}
			tests := tarFile("check", strings.Repeat("x", 4<<20), 0o644)
			if err := sb.CopyIn(t.Context(), runtime.Tests, tests, runtime.CopyOptions{Fresh: true}); err != nil {
				t.Fatal(err)
			}
			if err := sb.CopyIn(t.Context(), runtime.Verdict, nil, runtime.CopyOptions{Fresh: true}); err != nil {
				t.Fatal(err)
			}
			got := sh(t, sb, "head -c 8000000 /dev/zero >$TMPDIR/work && wc -c <"+sb.Path(runtime.Tests)+"/check >"+
				sb.Path(runtime.Verdict)+"/reward.txt; cat "+sb.Path(runtime.Verdict)+"/reward.txt")
			if got != "4194304\n" {
				t.Errorf("the grader says %q", got)
			}
			// What was kept, with all of that in it, goes on too.
			if err := sb.Keep(t.Context()); err != nil {
				t.Fatal(err)
			}
			again, err := rt.Attach(t.Context(), sb.Handle())
			if err != nil {
				t.Fatal(err)
			}
			closeSandbox(t, again.(*Sandbox))
		})
	}
}
