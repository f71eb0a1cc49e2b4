// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/tidemill/tidemill/internal/sweep"
)

func TestAlone(t *testing.T) {
	for _, kind := range Types() {
		if !Alone(kind, false) {
			t.Errorf("%s: the only worker of a store shares it", kind)
		}
	}
	for kind, want := range map[string]bool{"subprocess": true, "scripted": true, "docker": false, "remote": false} {
		if got := Alone(kind, true); got != want {
			t.Errorf("%s on a fleet: %v; want %v", kind, got, want)
		}
	}
}

type spool struct{ dir, used string }

func (s spool) SpoolDir() string         { return s.dir }
func (s spool) InSpool(name string) bool { return name == s.used }

func TestStartSweepsTheSpool(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.1", "b.1"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var f SweepFlags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Register(flags)
	if err := flags.Parse([]string{"--sweep-interval", "0s"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	run, err := f.Start(t.Context(), sweep.Config{Store: someStore, Log: zerolog.Nop()}, spool{dir, "a.1"})
	if err != nil {
		t.Fatal(err)
	}
	run(context.Background()) // with 0s it has nothing to do, and ends at once
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "a.1" {
		t.Errorf("left are %v, %v; want what is in use", left, err)
	}
	for _, bad := range []time.Duration{-time.Second, time.Millisecond} {
		f.interval = bad
		if f.Check() == nil {
			t.Errorf("an interval of %s is accepted", bad)
		}
	}
}
