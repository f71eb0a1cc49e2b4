// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"os/exec"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

// The price of a sandbox: what a trial does, against the same two programs started
// bare. Isolation has its own price, of which a network is the larger part.

func BenchmarkTrial(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchTrial(b, None, runtime.FullInternet) })
	b.Run("nested", func(b *testing.B) { benchTrial(b, Auto, runtime.FullInternet) })
	b.Run("offline", func(b *testing.B) { benchTrial(b, Auto, runtime.NoInternet) })
}

func benchTrial(b *testing.B, isolation Isolation, policy runtime.NetworkPolicy) {
	rt := newRuntime(b, Config{Isolation: isolation})
	env, err := rt.Prepare(context.Background(), runtime.RunSpec{})
	if err != nil {
		b.Fatal(err)
	}
	spec := testSpec("")
	spec.Network[runtime.Agent] = runtime.Network{Policy: policy}
	for b.Loop() {
		sb, err := env.Open(context.Background(), spec)
		if err != nil {
			b.Fatal(err)
		}
		for range 2 {
			if exit, err := sb.Exec(context.Background(), runtime.Command{Argv: []string{"sh", "-c", ":"}}); err != nil || !exit.OK() {
				b.Fatal(exit, err)
			}
		}
		if err := sb.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBare(b *testing.B) {
	for b.Loop() {
		for range 2 {
			if err := exec.Command("sh", "-c", ":").Run(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkTrialParallel(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchParallel(b, None) })
	b.Run("nested", func(b *testing.B) { benchParallel(b, Auto) })
}

func benchParallel(b *testing.B, isolation Isolation) {
	rt := newRuntime(b, Config{Isolation: isolation})
	env, err := rt.Prepare(context.Background(), runtime.RunSpec{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			sb, err := env.Open(context.Background(), testSpec(""))
			if err != nil {
				b.Error(err)
				return
			}
			for range 2 {
				if _, err := sb.Exec(context.Background(), runtime.Command{Argv: []string{"sh", "-c", ":"}}); err != nil {
					b.Error(err)
				}
			}
			if err := sb.Close(context.Background()); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkBareParallel(b *testing.B) {
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			for range 2 {
				if err := exec.Command("sh", "-c", ":").Run(); err != nil {
					b.Error(err)
				}
			}
		}
	})
}
