// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func TestKeepsWhatItStored(t *testing.T) {
	var mu sync.Mutex
	var log []string
	s := start(t, embedded.Config{
		Dir: filepath.Join(t.TempDir(), "not", "there"),
		Log: func(_ embedded.Level, line string) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, line)
		},
	})
	if got := s.ClientURL(); got != "" {
		t.Errorf("it listens on %s without being asked to", got)
	}
	again := make(chan struct{}, 1)
	nc, err := s.Connect(nats.ReconnectHandler(func(*nats.Conn) { again <- struct{}{} }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-again
	stream, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), 1)
	if err != nil || string(m.Data) != "kept" {
		t.Fatalf("message = %v, %v, want what was stored before the restart", m, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(strings.Join(log, "\n"), "Server is ready") {
		t.Errorf("log = %q, want the server's own lines", log)
	}
}

func TestListensWhereItIsTold(t *testing.T) {
	s := start(t, embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	url := s.ClientURL()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.ClientURL(); got != url {
		t.Fatalf("address %s after a restart, want %s as before", got, url)
	}
	_, err = embedded.Start(t.Context(), embedded.Config{
		Dir: t.TempDir(), Listen: strings.TrimPrefix(url, "nats://"), StartTimeout: 1,
	})
	if err == nil || !strings.Contains(err.Error(), "listen address") {
		t.Fatalf("start on a port that is taken: %v, want an error that names the address", err)
	}
	s.Shutdown()
	s.Shutdown()
	if _, err := s.Connect(); err == nil {
		t.Fatal("connected to a server that is down")
	}
}

func TestRefusesNonsense(t *testing.T) {
	for want, cfg := range map[string]embedded.Config{
		"no directory":       {},
		"want host:port":     {Dir: t.TempDir(), Listen: "4222"},
		"want a port from 0": {Dir: t.TempDir(), Listen: "localhost:x"},
		"want more than 0":   {Dir: t.TempDir(), StartTimeout: -1},
		"not a directory":    {Dir: "/dev/null/not-possible"},
	} {
		_, err := embedded.Start(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("start with %+v: %v, want an error that says %q", cfg, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := embedded.Start(ctx, embedded.Config{Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("start with a context that has ended: %v", err)
	}
}
