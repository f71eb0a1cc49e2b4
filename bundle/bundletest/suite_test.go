// SPDX-License-Identifier: Apache-2.0

package bundletest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/bundle/memstore"
)

const brokenVar = "BUNDLETEST_BROKEN"

// broken are stores that the suite must find out, and the test that must do so.
var broken = map[string]struct {
	fault bundletest.Fault
	test  string
}{
	"creates overwrite":   {bundletest.Fault{Op: bundletest.OpCreate, Do: bundletest.Lie()}, "Create/Race"},
	"one create in 40":    {bundletest.Fault{Op: bundletest.OpCreate, After: 40, Times: 1, Do: bundletest.Lie()}, "Create/Race"},
	"swaps don't compare": {bundletest.Fault{Op: bundletest.OpSwap, Do: bundletest.Lie()}, "Swap/Changed"},
	"counts get lost":     {bundletest.Fault{Op: bundletest.OpSwap, Do: bundletest.Lie()}, "Swap/LosesNoCount"},
	"objects vanish":      {bundletest.Fault{Op: bundletest.OpGet, After: 2, Do: bundletest.Lie()}, "Put/Replaces"},
	"listings end early":  {bundletest.Fault{Op: bundletest.OpList, Do: bundletest.Cut(3)}, "List/Prefixes"},
	"readers end early":   {bundletest.Fault{Op: bundletest.OpGet, Do: bundletest.Cut(100)}, "Put/NeverAMixture"},
	"ranges end early":    {bundletest.Fault{Op: bundletest.OpGetRange, Do: bundletest.Cut(3)}, "GetRange/Edges"},
}

// TestSuiteFindsBrokenStores runs the suite in a process of its own for each kind of
// broken store, and wants it to fail there.
func TestSuiteFindsBrokenStores(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), exe, "-test.run", "^TestBrokenStore$/^"+strings.ReplaceAll(b.test, "/", "$/^")+"$", "-test.v")
			cmd.Env = append(os.Environ(), brokenVar+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestBrokenStore/"+b.test) {
				t.Errorf("the suite found nothing: error %v, output:\n%s", err, out)
			}
		})
	}
}

// TestBrokenStore is what the test above runs.
func TestBrokenStore(t *testing.T) {
	b, ok := broken[os.Getenv(brokenVar)]
	if !ok {
		t.Skip("runs in a process of its own only")
	}
	bundletest.Run(t, bundletest.Harness{
		Open: func(*testing.T) bundle.Store {
			s := bundletest.NewFaulty(memstore.New())
			s.Inject(b.fault)
			return s
		},
		InMemory: true,
	})
}
