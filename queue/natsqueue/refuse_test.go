// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

func TestOlderThan(t *testing.T) {
	for version, want := range map[string]bool{
		"2.12.1": false, "2.12.0": true, "2.12": false, "2.11.9": true, "2.9.25": true, "1.4.1": true, "2.12.10": false, "2.15.2": false,
		"3.0.0": false, "2.12.1-RC.1": false, "2.12.0-beta": true, "": false, "dev": false, "2.x.1": false,
	} {
		if got := olderThan(version, minVersion); got != want {
			t.Errorf("olderThan(%q, %q) = %v, want %v", version, minVersion, got, want)
		}
	}
}

// A server without JetStream leaves its API to whoever answers there, which is how this
// test has one of an older level.
func TestRefusesOldServer(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	go srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server is not up after 30 s")
	}
	old, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	_, err = old.Subscribe("$JS.API.INFO", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.account_info_response","api":{"level":1,"total":0,"errors":0}}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Flush(); err != nil {
		t.Fatal(err)
	}
	_, err = Dial(t.Context(), srv.ClientURL(), Config{Store: "s"})
	if !errors.Is(err, ErrTooOld) || !strings.Contains(err.Error(), "API level 1") || !strings.Contains(err.Error(), minVersion) {
		t.Fatalf("error %v; want %v that names the level and the version", err, ErrTooOld)
	}
}

// listening starts a server that others can dial.
func listening(t *testing.T) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", RelaxedSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func TestRefusesClockSkew(t *testing.T) {
	s := listening(t)
	for _, tt := range []struct {
		off  time.Duration
		says string // "" for fine
	}{
		{time.Hour, "behind ours"},
		{-time.Hour, "ahead of ours"},
		{-time.Second, ""},
		{time.Second, ""},
		{6 * time.Second, "behind ours"},
	} {
		cfg := Config{Store: "s", wall: func() time.Time { return time.Now().Add(tt.off) }}
		q, err := Dial(t.Context(), s.ClientURL(), cfg)
		if err == nil {
			_ = q.Close()
		}
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("a clock that is off by %v: %v", tt.off, err)
		case tt.says != "" && (!errors.Is(err, ErrClockSkew) || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("a clock that is off by %v: %v; want %v that says %q", tt.off, err, ErrClockSkew, tt.says)
		}
	}
}

// What differs is named, and what can be changed is changed.
func TestStreamsAreAdapted(t *testing.T) {
	s := listening(t)
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	config := func(name string) jetstream.StreamConfig {
		st, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return st.CachedInfo().Config
	}
	dial := func(cfg Config) error {
		cfg.Store = "s"
		q, err := Dial(t.Context(), s.ClientURL(), cfg)
		if err == nil {
			err = q.Close()
		}
		return err
	}
	if err := dial(Config{}); err != nil {
		t.Fatal(err)
	}
	fresh := config(trialsStream)
	if fresh.Duplicates != dedupeWindow || fresh.Replicas != 1 || fresh.MaxMsgs != -1 || fresh.MaxBytes != -1 || fresh.MaxAge != 0 {
		t.Errorf("a new stream has the configuration %+v", fresh)
	}

	// An operator's limits would lose jobs; those on what people read are the operator's.
	limited := fresh
	limited.MaxMsgs, limited.MaxAge, limited.MaxMsgsPerSubject, limited.Description = 1000, time.Hour, 5, "mine"
	dead := config(deadStream)
	dead.MaxMsgs = 10
	for _, c := range []jetstream.StreamConfig{limited, dead} {
		if _, err := js.UpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := dial(Config{DedupeWindow: time.Minute}); err != nil {
		t.Fatal(err)
	}
	got := config(trialsStream)
	if got.MaxMsgs != -1 || got.MaxAge != 0 || got.MaxMsgsPerSubject != -1 || got.Duplicates != time.Minute {
		t.Errorf("after opening with another window: %+v", got)
	}
	if got.Description != "mine" || config(deadStream).MaxMsgs != 10 {
		t.Error("what is an operator's own was changed")
	}
	if err := dial(Config{}); err != nil {
		t.Fatal(err)
	}
	if got := config(trialsStream).Duplicates; got != time.Minute {
		t.Errorf("a process without a wish set the window to %v", got)
	}

	// What the server can't change is refused with its keys.
	for _, tt := range []struct {
		stream string
		change func(*jetstream.StreamConfig)
		says   string
	}{
		{trialsStream, func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy }, "retention is Limits, want WorkQueue"},
		{trialsStream, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "storage is Memory, want File"},
		{trialsStream, func(c *jetstream.StreamConfig) { c.Subjects = []string{"tidemill.trials.>"} }, "subjects is [tidemill.trials.>]"},
		{trialsStream, func(c *jetstream.StreamConfig) { c.DenyDelete = true }, "deny_delete is true, want false"},
		{trialsStream, func(c *jetstream.StreamConfig) { c.Metadata = nil }, "stream TRIALS is not Tidemill's"},
		{trialsStream, func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{storeKey: "other"} }, `serves the store "other", not "s"`},
		{leasesStream, func(c *jetstream.StreamConfig) { c.Subjects = []string{"$KV.tidemill-leases.>"} }, "subjects is [$KV.tidemill-leases.>]"},
		{"KV_" + runsBucket, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "storage is Memory, want File"},
	} {
		c := config(tt.stream)
		was := c
		if err := js.DeleteStream(t.Context(), tt.stream); err != nil {
			t.Fatal(err)
		}
		tt.change(&c)
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatalf("%s: %v", tt.says, err)
		}
		err := dial(Config{})
		if !errors.Is(err, queue.ErrConflict) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.stream) {
			t.Errorf("error %v; want %v that says %q", err, queue.ErrConflict, tt.says)
		}
		if err := js.DeleteStream(t.Context(), tt.stream); err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateStream(t.Context(), was); err != nil {
			t.Fatal(err)
		}
	}
	if err := dial(Config{}); err != nil {
		t.Errorf("after all is as it was: %v", err)
	}
}

// A user that may do what docs/nats.md lists can do everything.
func TestListedPermissionsAreEnough(t *testing.T) {
	opts := &server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()}
	publish, subscribe := documentedPermissions(t)
	opts.Users = []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
	}}}
	srv, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	go srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server is not up after 30 s")
	}
	denied := make(chan error, 64)
	q, err := Dial(t.Context(), srv.ClientURL(), Config{Store: "s", LeaseSettle: -1}, nats.UserInfo("u", "p"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	ctx := t.Context()
	step := func(doing string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", doing, err)
		}
	}
	run := queue.Run{ID: "r", Class: "a", Limits: queue.Limits{MaxInFlight: 5, MaxStartsPerSecond: 1000}}
	step("open run", q.OpenRun(ctx, run))
	var jobs []queue.Job
	for i := range 4 {
		jobs = append(jobs, queue.Job{ID: queue.ID{Trial: fmt.Sprint("t", i), Epoch: 1, Release: 1}})
	}
	_, err = q.Publish(ctx, "r", jobs)
	step("publish", err)
	_, err = q.Publish(ctx, "r", jobs)
	step("publish again", err)
	ends := []func(queue.Lease) error{
		func(l queue.Lease) error { return l.Done(ctx) },
		func(l queue.Lease) error { return l.Retry(ctx, time.Hour, nil) },
		func(l queue.Lease) error { return l.Bury(ctx, "why") },
		func(l queue.Lease) error { return l.Extend(ctx) },
	}
	for _, end := range ends {
		l, err := q.Lease(ctx, request("0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		step("end of a lease", end(l))
	}
	step("pause", q.PauseRun(ctx, "r"))
	step("resume", q.ResumeRun(ctx, "r"))
	_, err = q.Stats(ctx, "r")
	step("stats", err)
	_, err = q.DeadLetters(ctx, "r", 0)
	step("dead letters", err)
	_, err = q.Backlog(ctx)
	step("backlog", err)
	_, err = q.PurgeRun(ctx, "r")
	step("purge", err)
	_, err = q.CloseRun(ctx, "r", func(context.Context) (bool, error) { return true, nil })
	step("close run", err)
	step("announce", q.Announce(ctx, queue.Presence{Worker: "w"}))
	_, err = q.Workers(ctx)
	step("workers", err)
	_, err = q.Claim(ctx, "what", "w")
	step("claim", err)
	step("unclaim", q.Unclaim(ctx, "what", "w"))
	step("withdraw", q.Withdraw(ctx, "w"))
	step("rescue", q.rescueAll(ctx))
	if err := q.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-denied:
		t.Errorf("the server denied: %v", err)
	default:
	}
}
