// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/runtimetest"
)

func TestConformance(t *testing.T) {
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
				Runtime: func(t *testing.T) runtime.Runtime { return newRuntime(t, Config{Root: root}) },
				Left: func(t *testing.T, mark string) []string {
					return append(entriesOf(t, root), runtimetest.HostProcesses(mark)...)
				},
				ProviderName: func(_ *testing.T, h runtime.Handle) string { return filepath.Base(h.ID) },
				Abandon: func(t *testing.T, _ runtime.RunSpec, spec runtime.Spec) runtime.Handle {
					handle, _ := crash(t, root, spec)
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
