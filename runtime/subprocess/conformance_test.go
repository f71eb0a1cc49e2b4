// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/runtimetest"
)

func TestConformance(t *testing.T) { conformance(t, None) }

func conformance(t *testing.T, isolation Isolation) {
	runtimetest.Run(t, runtimetest.Harness{
		Env:       []string{markVar},
		TakesOver: true,
		Failing: []runtimetest.Failing{{
			Name: "labels of another store", Stage: runtime.StageProvision,
			Edit: func(s *runtime.Spec) { s.Labels.Store = "another" },
		}},
		Provider: func(t *testing.T) runtimetest.Provider {
			root := t.TempDir()
			return runtimetest.Provider{
				Runtime: func(t *testing.T) runtime.Runtime { return newRuntime(t, Config{Root: root, Isolation: isolation}) },
				Left: func(t *testing.T, mark string) []string {
					return slices.Concat(entriesOf(t, root), runtimetest.HostProcesses(mark), mountsBelow(t, root))
				},
				ProviderName: func(_ *testing.T, h runtime.Handle) string { return filepath.Base(h.ID) },
				Abandon: func(t *testing.T, _ runtime.RunSpec, spec runtime.Spec) runtime.Handle {
					handle, _ := crashIn(t, isolation, root, spec)
					return handle
				},
			}
		},
		Special: func(t *testing.T, sb runtime.Sandbox, dir string) []string {
			l, err := net.Listen("unix", filepath.Join(sb.Path(runtime.Workdir), dir, "socket"))
			if err != nil {
				t.Fatal(err)
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return []string{"socket"}
		},
	})
}

// mountsBelow lists what is mounted below a directory of this machine.
func mountsBelow(t *testing.T, root string) []string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil // a system without
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, " "+root) {
			found = append(found, "mount: "+strings.TrimSpace(line))
		}
	}
	return found
}
