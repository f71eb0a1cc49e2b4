// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

// BenchmarkTrialFiles is all that a worker asks of a sandbox for a small trial: places are
// made and filled, two programs run, verdict and logs are read. Its allocations, and its
// system calls by strace, are what tells one version from another.
func BenchmarkTrialFiles(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchTrialFiles(b, None) })
	b.Run("nested", func(b *testing.B) { benchTrialFiles(b, Auto) })
}

func benchTrialFiles(b *testing.B, isolation Isolation) {
	rt := newRuntime(b, Config{Isolation: isolation})
	ctx := context.Background()
	env, err := rt.Prepare(ctx, runtime.RunSpec{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		sb, err := env.Open(ctx, testSpec(""))
		if err != nil {
			b.Fatal(err)
		}
		fresh := runtime.CopyOptions{Fresh: true}
		check(b,
			sb.SetPhase(ctx, runtime.Setup),
			sb.CopyIn(ctx, runtime.Input, oneFile(b, "instruction.md"), fresh),
			sb.CopyIn(ctx, runtime.AgentLogs, nil, fresh),
			sb.CopyIn(ctx, runtime.Artifacts, nil, fresh),
			sb.SetPhase(ctx, runtime.Agent),
			benchExec(ctx, sb, ": >answer.txt"),
			sb.EndProcesses(ctx),
			sb.SetPhase(ctx, runtime.Grade),
			sb.CopyIn(ctx, runtime.Tests, nil, fresh),
			sb.CopyIn(ctx, runtime.Tests, oneFile(b, "row.json"), runtime.CopyOptions{}),
			sb.CopyIn(ctx, runtime.Verdict, nil, fresh),
			benchExec(ctx, sb, "echo 1 >'"+sb.Path(runtime.Verdict)+"/reward.txt'"),
			sb.EndProcesses(ctx),
			copyAway(ctx, sb, runtime.Verdict, "reward.txt"),
			copyAway(ctx, sb, runtime.AgentLogs, "trajectory.json"),
			copyAway(ctx, sb, runtime.AgentLogs, "usage.json"),
			copyAway(ctx, sb, runtime.Logs, "."),
			sb.Close(ctx),
		)
	}
}

func check(b *testing.B, errs ...error) {
	b.Helper()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
}

func oneFile(b *testing.B, name string) io.Reader {
	b.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	check(b, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 5}))
	_, err := io.WriteString(w, "hello")
	check(b, err, w.Close())
	return &buf
}

func benchExec(ctx context.Context, sb runtime.Sandbox, script string) error {
	var out bytes.Buffer
	exit, err := sb.Exec(ctx, runtime.Command{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: io.Discard})
	if err == nil && !exit.OK() {
		err = errors.New(out.String())
	}
	return err
}

// copyAway reads what is there, which may be nothing.
func copyAway(ctx context.Context, sb runtime.Sandbox, p runtime.Place, name string) error {
	c, err := sb.CopyOut(ctx, p, name, runtime.CopyLimits{})
	if errors.Is(err, runtime.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return errors.Join(err, c.Close())
}
