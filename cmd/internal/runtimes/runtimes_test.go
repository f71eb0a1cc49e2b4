// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// someStore is no other test's: sweeps here reach engines that all tests share.
const someStore = "b1d2ff07-3c60-4a7a-9a2e-70c9f1f0a5d3"

func TestEveryTypeCanBeMade(t *testing.T) {
	rts, err := New(Config{Dir: filepath.Join(t.TempDir(), "work"), StoreUUID: someStore}, Types()...)
	if err != nil {
		t.Fatal(err)
	}
	for kind, rt := range rts {
		if rt.Type() != kind {
			t.Errorf("%s calls itself %s", kind, rt.Type())
		}
	}
	if sum, err := Sweep(t.Context(), rts, someStore, zerolog.Nop()); err != nil || sum.Failed > 0 {
		t.Errorf("%+v, %v", sum, err)
	}
	if err := Close(rts); err != nil {
		t.Error(err)
	}
}

func TestUnknownTypes(t *testing.T) {
	c := Config{Dir: filepath.Join(t.TempDir(), "work"), StoreUUID: someStore}
	_, err := New(c, "subprocess", "dockr")
	unknown, ok := errors.AsType[*UnknownTypeError](err)
	if !ok || unknown.Type != "dockr" {
		t.Errorf("error %v; want an UnknownTypeError of dockr", err)
	}
	if err := Admit(t.Context(), nil, &manifest.Run{Runtime: manifest.RuntimeConfig{Type: "dockr"}}, someStore); !errors.As(err, &unknown) {
		t.Errorf("error %v; want an UnknownTypeError", err)
	}
}

// What goes wrong with a known type is not the run file's fault.
func TestATypeThatCantBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(Config{Dir: file, StoreUUID: someStore}, "subprocess")
	if _, unknown := errors.AsType[*UnknownTypeError](err); err == nil || unknown {
		t.Errorf("error %v; want one about the directory", err)
	}
}

func TestAdmission(t *testing.T) {
	rts, err := New(Config{Dir: filepath.Join(t.TempDir(), "work"), StoreUUID: someStore}, "subprocess")
	if err != nil {
		t.Fatal(err)
	}
	defer Close(rts)
	run := &manifest.Run{Runtime: manifest.RuntimeConfig{Type: "subprocess"}}
	enforced := rts["subprocess"].Properties().Policies
	for _, policy := range []runtime.NetworkPolicy{runtime.FullInternet, runtime.NoInternet, runtime.LimitedInternet} {
		run.NetworkPolicy = string(policy)
		err := Admit(t.Context(), rts, run, someStore)
		unsupported, refused := errors.AsType[*runtime.UnsupportedError](err)
		if want := !slices.Contains(enforced, policy); refused != want {
			t.Errorf("%s: %v; want refused %t", policy, err, want)
		}
		if refused && unsupported.Value != string(policy) {
			t.Errorf("%s: the error names %q", policy, unsupported.Value)
		}
	}
}

// The one who wrote the run file can mend it.
func TestWhatIsRefusedIsBadInput(t *testing.T) {
	c := Config{Dir: filepath.Join(t.TempDir(), "work"), StoreUUID: someStore}
	run := manifest.Run{
		File: "run.yaml", Runtime: manifest.RuntimeConfig{Type: "scripted"}, NetworkPolicy: string(runtime.FullInternet),
	}
	rts, err := ForRun(c, &run, run.File)
	if err != nil {
		t.Fatal(err)
	}
	defer Close(rts)
	if err := AdmitHere(t.Context(), rts, &run, someStore); err != nil {
		t.Errorf("error %v of a run that can run here", err)
	}
	unknown, secret, network := run, run, run
	unknown.Runtime.Type = "dockr"
	secret.Agent.Secrets = []string{"TIDEMILL_TEST_UNSET"}
	network.NetworkPolicy = "some_internet"
	_, errUnknown := ForRun(c, &unknown, "nightly-7")
	for want, err := range map[string]error{
		"nightly-7: runtime.type: ": errUnknown,
		"run.yaml: agent.secrets: TIDEMILL_TEST_UNSET is not set in the environment": AdmitHere(t.Context(), rts, &secret, someStore),
		"run.yaml: prepare: ": AdmitHere(t.Context(), rts, &network, someStore),
	} {
		coded, ok := errors.AsType[*app.CodeError](err)
		if !ok || coded.Code != app.ExitUsage || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v; want bad input that begins with %q", err, want)
		}
	}
}

// What somebody kept is theirs until it expires, and then it is a leftover.
func TestSweepLeavesWhatIsKept(t *testing.T) {
	rts, err := New(Config{Dir: filepath.Join(t.TempDir(), "work"), StoreUUID: someStore}, "subprocess")
	if err != nil {
		t.Fatal(err)
	}
	defer Close(rts)
	rt := rts["subprocess"]
	network := runtime.Network{Policy: runtime.FullInternet}
	env, err := rt.Prepare(t.Context(), runtime.RunSpec{Run: "r", Store: someStore, Network: []runtime.Network{network}})
	if err != nil {
		t.Fatal(err)
	}
	for name, expires := range map[string]time.Time{"kept": time.Now().Add(time.Hour), "expired": time.Now().Add(-time.Second)} {
		box, err := env.Open(t.Context(), runtime.Spec{
			Name: name, Labels: runtime.Labels{Store: someStore, Trial: name, ExpiresAt: expires},
			Network: map[runtime.Phase]runtime.Network{runtime.Agent: network},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := box.(runtime.Keeper).Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if sum, err := Sweep(t.Context(), rts, someStore, zerolog.Nop()); err != nil || sum.Removed != 1 || sum.Failed > 0 {
		t.Fatalf("%+v, %v; want one removed", sum, err)
	}
	left, err := rt.List(t.Context())
	if err != nil || len(left) != 1 || left[0].Name != "kept" {
		t.Errorf("left are %+v, %v; want what is kept and didn't expire", left, err)
	}
}
