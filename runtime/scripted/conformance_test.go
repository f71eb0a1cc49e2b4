// SPDX-License-Identifier: Apache-2.0

package scripted_test

import (
	"fmt"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/runtimetest"
	"github.com/tidemill/tidemill/runtime/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	few := scripted.Everything()
	few.Policies, few.Limits = []runtime.NetworkPolicy{runtime.FullInternet}, []string{"pids"}
	few.Users, few.Images, few.Services, few.OwnProcesses = false, false, false, false
	for name, props := range map[string]*runtime.Properties{"everything": nil, "few properties": &few} {
		t.Run(name, func(t *testing.T) {
			runtimetest.Run(t, runtimetest.Harness{
				Provider: func(t *testing.T) runtimetest.Provider { return provider(t, props) },
				Programs: programs{},
				Users:    [2]string{"alice", "bob"},
				Failing: []runtimetest.Failing{
					{Name: "an image that isn't there", Edit: opens("fail-times 1 image no such image"), Stage: runtime.StageImage},
					{Name: "a full provider", Edit: opens("first 1 capacity"), Stage: runtime.StageProvision},
					{Name: "a script that is none", Edit: opens("make-coffee"), Stage: runtime.StageProvision},
				},
			})
		})
	}
}

func opens(script string) func(*runtime.Spec) {
	return func(s *runtime.Spec) { s.Env[scripted.OpenVar] = script }
}

func provider(_ *testing.T, props *runtime.Properties) runtimetest.Provider {
	shared := &scripted.Provider{}
	worker := func() *scripted.Runtime { return scripted.New(scripted.Config{Provider: shared, Properties: props}) }
	return runtimetest.Provider{
		Runtime: func(*testing.T) runtime.Runtime { return worker() },
		Left:    func(*testing.T, string) []string { return shared.Left() },
		Abandon: func(t *testing.T, run runtime.RunSpec, spec runtime.Spec) runtime.Handle {
			w := worker()
			env, err := w.Prepare(t.Context(), run)
			if err != nil {
				t.Fatalf("Prepare: %v", err)
			}
			sb, err := env.Open(t.Context(), spec)
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			if _, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"write abandoned x", "leave-process"}}); err != nil {
				t.Fatalf("Exec: %v", err)
			}
			w.Crash()
			return sb.Handle()
		},
	}
}

// programs makes instructions of the suite's steps.
type programs struct{}

func (programs) Args(args ...string) []string { return append([]string{"args"}, args...) }

func (programs) Program(steps ...runtimetest.Step) []string {
	out := []string{"emit "}
	for _, s := range steps {
		out = append(out, instruction(s))
	}
	return out
}

func instruction(s runtimetest.Step) string {
	path, to, data := strconv.Quote(s.Path), strconv.Quote(s.To), strconv.Quote(string(s.Data))
	switch s.Op {
	case runtimetest.OpOut:
		return "emit " + data
	case runtimetest.OpErr:
		return "emit-err " + data
	case runtimetest.OpFlood:
		return fmt.Sprint("flood ", s.N)
	case runtimetest.OpExit:
		return fmt.Sprint("exit ", s.N)
	case runtimetest.OpDie:
		return fmt.Sprint("kill ", s.N)
	case runtimetest.OpEcho:
		return "echo-env " + path
	case runtimetest.OpUser:
		return "whoami"
	case runtimetest.OpWrite:
		return "write " + path + " " + data
	case runtimetest.OpSymlink:
		return "symlink " + to + " " + path
	case runtimetest.OpRename:
		return "rename " + path + " " + to
	case runtimetest.OpChild, runtimetest.OpLoud:
		return "leave-process " + path
	case runtimetest.OpDaemon:
		return "leave-daemon " + path
	case runtimetest.OpRead, runtimetest.OpMkdir, runtimetest.OpFifo, runtimetest.OpAlive, runtimetest.OpFetch:
		return string(s.Op) + " " + path
	default: // cat, env, hold, pwd, ignore-term
		return string(s.Op)
	}
}
