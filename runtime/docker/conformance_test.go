// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/runtimetest"
)

func TestConformance(t *testing.T) {
	cli := testenv.Docker(t)
	image := testenv.BusyboxImage(t, cli)
	runtimetest.Run(t, runtimetest.Harness{
		Spec:          runtime.Spec{Image: runtime.Image{Ref: image}},
		Users:         [2]string{testenv.TestUser, testenv.OtherTestUser},
		NoSignalNames: true, // the engine has exit codes only
		TextOnly:      true, // its API is JSON
		TakesOver:     true,
		Patience:      patience,
		Failing: []runtimetest.Failing{
			{
				Name: "labels of another store", Stage: runtime.StageProvision,
				Edit: func(s *runtime.Spec) { s.Labels.Store = "another" },
			},
			{
				Name: "an image that isn't there", Stage: runtime.StageImage,
				Edit: func(s *runtime.Spec) {
					s.Image = runtime.Image{Ref: "tidemill-test/no-such-image:1", PullPolicy: "never"}
				},
			},
			{
				Name: "a user that isn't there", Stage: runtime.StageProvision,
				Edit: func(s *runtime.Spec) { s.Users = map[runtime.Phase]string{runtime.Grade: "somebody"} },
			},
			{
				Name: "less memory than the engine takes", Stage: runtime.StageProvision,
				Edit: func(s *runtime.Spec) { s.Resources.Memory = 1 << 20 },
			},
			{
				Name: "a file for a workdir", Stage: runtime.StageProvision,
				Edit: func(s *runtime.Spec) { s.Workdir = "/bin/busybox" },
			},
		},
		Provider: func(t *testing.T) runtimetest.Provider {
			l := &lab{cli: cli, image: image, dir: t.TempDir()}
			return runtimetest.Provider{
				Runtime: func(t *testing.T) runtime.Runtime { return l.runtime(t) },
				Left: func(t *testing.T, mark string) []string {
					return slices.Concat(l.left(t), runtimetest.HostProcesses(mark))
				},
				ProviderName: func(t *testing.T, h runtime.Handle) string {
					info, err := cli.ContainerInspect(t.Context(), h.ID)
					if err != nil {
						t.Fatal(err)
					}
					return strings.TrimPrefix(info.Name, "/")
				},
				Abandon: func(t *testing.T, _ runtime.RunSpec, spec runtime.Spec) runtime.Handle {
					return crash(t, l.dir, spec)
				},
			}
		},
	})
}
