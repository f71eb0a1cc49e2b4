// SPDX-License-Identifier: Apache-2.0

package natsqueue_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

func TestConfigRefusesNonsense(t *testing.T) {
	for want, change := range map[string]func(*natsqueue.Config){
		"Store":        func(c *natsqueue.Config) { c.Store = "" },
		"AckRepeats":   func(c *natsqueue.Config) { c.AckRepeats = -1 },
		"BatchSize":    func(c *natsqueue.Config) { c.BatchSize = 1001 },
		"CallTimeout":  func(c *natsqueue.Config) { c.CallTimeout = -1 },
		"DedupeWindow": func(c *natsqueue.Config) { c.DedupeWindow = time.Millisecond },
		"LeaseTTL":     func(c *natsqueue.Config) { c.LeaseTTL = time.Millisecond },
		"ProbeEvery":   func(c *natsqueue.Config) { c.ProbeEvery = -1 },
		"ProbeTimeout": func(c *natsqueue.Config) { c.ProbeTimeout = time.Hour },
		"Replicas":     func(c *natsqueue.Config) { c.Replicas = 2 },
	} {
		cfg := testConfig()
		change(&cfg)
		err := cfg.WithDefaults().Validate()
		if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("validate: %v, want ErrInvalid that names %s", err, want)
		}
	}
}

func TestRefusesAnotherStore(t *testing.T) {
	s := startServer(t)
	open(t, s)
	cfg := testConfig()
	cfg.Store = "another"
	_, err := natsqueue.Open(t.Context(), connect(t, s), cfg)
	if !errors.Is(err, queue.ErrConflict) || !strings.Contains(err.Error(), "another") {
		t.Fatalf("open with another store: %v, want ErrConflict that names it", err)
	}
}

func TestRefusesForeignStream(t *testing.T) {
	s := startServer(t)
	js, err := jetstream.New(connect(t, s))
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "TRIALS", Subjects: []string{"x"}, Metadata: map[string]string{"tidemill-store": testConfig().Store},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := natsqueue.Open(t.Context(), connect(t, s), testConfig()); !errors.Is(err, queue.ErrConflict) {
		t.Fatalf("open on a foreign stream: %v, want ErrConflict", err)
	}
}

// A connection that sends late what was given up early is refused.
func TestRefusesBufferingConnection(t *testing.T) {
	s := startServer(t)
	for name, opt := range map[string]nats.Option{
		"buffer":   nats.ReconnectBufSize(1 << 20),
		"gives up": nats.MaxReconnects(60),
	} {
		if _, err := natsqueue.Open(t.Context(), connect(t, s, opt), testConfig()); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s: open: %v, want ErrInvalid", name, err)
		}
	}
}

func TestDial(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	q, err := natsqueue.Dial(t.Context(), s.ClientURL(), testConfig(), nats.Name("worker"))
	if err != nil {
		t.Fatal(err)
	}
	if err := q.OpenRun(t.Context(), queue.Run{ID: "r", Class: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	url := strings.Replace(s.ClientURL(), "//", "//user:secret@", 1)
	_, err = natsqueue.Dial(t.Context(), url, testConfig())
	if !errors.Is(err, queue.ErrUnreachable) || strings.Contains(err.Error(), "secret") {
		t.Fatalf("dial a server that is down: %v, want ErrUnreachable and no password", err)
	}
}

// A server that isn't there yet is waited for: the first word comes at once, and others
// only after a pause.
func TestDialBeforeTheServer(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	url := s.ClientURL()
	s.Shutdown()
	words := 0
	cfg := testConfig()
	cfg.OpenWait = time.Minute
	cfg.OnWait = func(why error) {
		words++
		if !errors.Is(why, queue.ErrUnreachable) {
			t.Error(why)
		}
		if words == 1 {
			if s, err = embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: strings.TrimPrefix(url, "nats://")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer func() { s.Shutdown() }()
	q, err := natsqueue.Dial(t.Context(), url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if words == 0 {
		t.Error("nobody had to wait")
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

// What can't be reached in that time is said, and so is that nobody waits any more.
func TestDialGivesUp(t *testing.T) {
	words := 0
	cfg := testConfig()
	cfg.OpenWait = openPauses
	cfg.OnWait = func(error) { words++ }
	began := time.Now()
	_, err := natsqueue.Dial(t.Context(), "nats://127.0.0.1:1", cfg)
	if took := time.Since(began); !errors.Is(err, queue.ErrUnreachable) || took < openPauses {
		t.Errorf("dial: %v after %v, want ErrUnreachable after %v", err, took, openPauses)
	}
	if words != 1 {
		t.Errorf("%d words in %v, want one", words, openPauses)
	}
}

// openPauses is a few tries long, and too short for a second word.
const openPauses = 1200 * time.Millisecond
