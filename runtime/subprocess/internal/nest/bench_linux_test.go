// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
)

// The price of a nest: opened, commands in it, closed; against the same commands
// started bare.

func BenchmarkNest(b *testing.B) {
	for _, offline := range []bool{false, true} {
		for _, commands := range []int{0, 1, 2} {
			b.Run(fmt.Sprintf("offline=%v/commands=%d", offline, commands), func(b *testing.B) {
				warden := startWarden(b)
				p := newPlace(b, testRoot(b), "box")
				spec := p.spec("bench")
				spec.Offline = offline
				for b.Loop() {
					benchNest(b, warden, p, spec, commands)
				}
			})
		}
	}
	for name, edit := range map[string]func(*Spec){
		"limits": func(s *Spec) { s.Memory, s.Pids = 1<<30, 100 },
		"disk":   func(s *Spec) { s.Disk = 1 << 30 },
	} {
		b.Run(name, func(b *testing.B) {
			warden := startWarden(b)
			p := newPlace(b, testRoot(b), "box")
			spec := p.spec("bench")
			edit(&spec)
			for b.Loop() {
				benchNest(b, warden, p, spec, 2)
			}
		})
	}
}

func benchNest(b testing.TB, warden *Warden, p place, spec Spec, commands int) {
	n, err := warden.Open(context.Background(), spec)
	if err != nil {
		b.Error(err)
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Error(err)
		return
	}
	defer null.Close()
	for range commands {
		proc, err := n.Start(Command{
			Argv: []string{"/bin/sh", "-c", ":"}, Dir: p.work, Files: fdsOf(null, null, null),
		})
		if err != nil {
			b.Error(err)
			return
		}
		if s, err := proc.Wait(); err != nil || s.Wait != 0 {
			b.Error(s, err)
		}
	}
	if err := n.End(context.Background()); err != nil {
		b.Error(err)
	}
	if err := n.Close(context.Background()); err != nil {
		b.Error(err)
	}
}

func BenchmarkBare(b *testing.B) {
	for b.Loop() {
		for range 2 {
			if err := exec.Command("/bin/sh", "-c", ":").Run(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkNestParallel(b *testing.B) {
	warden := startWarden(b)
	root := testRoot(b)
	var serial atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		name := fmt.Sprintf("box%d", serial.Add(1))
		p := newPlace(b, root, name)
		spec := p.spec(name)
		for pb.Next() {
			benchNest(b, warden, p, spec, 2)
		}
	})
}
