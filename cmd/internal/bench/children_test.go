// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

// isolations are how children of both sides are kept apart from the rest of the machine.
var isolations = []isolation{
	{name: "plain", option: "none", policy: runtime.FullInternet},
	{name: "namespaces", option: "required", policy: runtime.FullInternet, same: true},
	{name: "no_internet", option: "required", policy: runtime.NoInternet, same: true},
	{name: "namespaces-flags", option: "required", policy: runtime.FullInternet, flags: newNamespaces},
	{name: "no_internet-flags", option: "required", policy: runtime.NoInternet, flags: newNamespaces | syscall.CLONE_NEWNET},
}

const newNamespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC

type isolation struct {
	name string
	// option and policy ask Tidemill for it in the run file.
	option string
	policy runtime.NetworkPolicy
	// same gives the bare side's children the very isolation of ours: the same sandbox.
	same bool
	// flags are all that the bare side's children get otherwise: namespaces in which
	// nothing is hidden, mounted or limited. That is not the same isolation, and the ratio
	// has the price of the difference in it.
	flags uintptr
}

// The files and the scripts of a trial's children.
var (
	childFiles   = []string{"input/instruction.md", "input/row.json", "tests/row.json"}
	childScripts = []string{":", `echo 1 >"$TIDEMILL_LOGS_DIR/verifier/reward.txt"`}
)

// plainChildren runs agent and grader in a directory of their own, and removes it.
func plainChildren(dir string, attr *syscall.SysProcAttr) func(string) error {
	return func(name string) error {
		work, side := filepath.Join(dir, name), filepath.Join(dir, name+"@side")
		for _, dir := range []string{
			work, side, filepath.Join(side, "input"), filepath.Join(side, "logs/agent"),
			filepath.Join(side, "logs/verifier"), filepath.Join(side, "logs/artifacts"), filepath.Join(side, "tests"),
		} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		defer os.RemoveAll(work)
		defer os.RemoveAll(side)
		for _, file := range append([]string{"owner.json"}, childFiles...) {
			if err := os.WriteFile(filepath.Join(side, file), make([]byte, 200), 0o644); err != nil {
				return err
			}
		}
		for _, script := range childScripts {
			cmd := exec.Command("sh", "-c", script)
			var out, errs bytes.Buffer
			cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = work, &out, &errs, attr
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TIDEMILL_LOGS_DIR=" + filepath.Join(side, "logs")}
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s: %w: %s", script, err, errs.Bytes())
			}
		}
		_, err := os.ReadFile(filepath.Join(side, "logs/verifier/reward.txt"))
		return err
	}
}

// isolatedChildren runs agent and grader in a sandbox of the runtime, with the calls that it
// can't do without.
func isolatedChildren(b *testing.B, dir string, iso isolation) func(string) error {
	b.Helper()
	root := filepath.Join(dir, "work")
	rt, err := subprocess.New(subprocess.Config{Root: root, Store: "bare"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { rt.Close() })
	network := runtime.Network{Policy: iso.policy}
	env, err := rt.Prepare(b.Context(), runtime.RunSpec{
		Network: []runtime.Network{network}, Options: map[string]any{"isolation": iso.option},
	})
	if err != nil {
		b.Fatal(err)
	}
	spec := runtime.Spec{Network: map[runtime.Phase]runtime.Network{}}
	for _, phase := range []runtime.Phase{runtime.Setup, runtime.Agent, runtime.Grade} {
		spec.Network[phase] = network
	}
	return func(name string) (err error) {
		ctx := context.Background()
		spec := spec
		spec.Name = name
		sb, err := env.Open(ctx, spec)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sb.Close(ctx)) }()
		for _, p := range []runtime.Place{runtime.AgentLogs, runtime.Verdict, runtime.Artifacts, runtime.Input, runtime.Tests} {
			if err := sb.CopyIn(ctx, p, nil, runtime.CopyOptions{}); err != nil {
				return err
			}
		}
		side := filepath.Dir(sb.Path(runtime.Input))
		for _, file := range childFiles {
			if err := os.WriteFile(filepath.Join(side, file), make([]byte, 200), 0o644); err != nil {
				return err
			}
		}
		for _, script := range childScripts {
			var out, errs strings.Builder
			exit, err := sb.Exec(ctx, runtime.Command{
				Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &errs,
				Env: map[string]string{"TIDEMILL_LOGS_DIR": sb.Path(runtime.Logs)},
			})
			if err != nil || !exit.OK() {
				return fmt.Errorf("%s: %+v, %w: %s", script, exit, err, errs.String())
			}
		}
		_, err = os.ReadFile(filepath.Join(side, "logs/verifier/reward.txt"))
		return err
	}
}
