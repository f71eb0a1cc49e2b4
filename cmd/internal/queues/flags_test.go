// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// Every way to get in gets in.
func TestWaysIn(t *testing.T) {
	a := newAuthority(t)
	serverCert, serverKey := a.issue(t, "server", func(*x509.Certificate) {})
	cert, key := a.issue(t, "client", func(*x509.Certificate) {})
	tls := fmt.Sprintf("tls: {cert_file: %q, key_file: %q", serverCert, serverKey)
	operator, creds := operator(t)
	seed, public := nkey(t)
	for name, c := range map[string]struct {
		config string
		scheme string
		flags  Flags
	}{
		"nobody asks":        {"", "nats", Flags{}},
		"user and password":  {`authorization: {user: u, password: "p"}`, "nats", Flags{User: "u", Password: "p"}},
		"user in the URL":    {`authorization: {user: u, password: "p"}`, "nats://u:p@", Flags{}},
		"token":              {`authorization: {token: "t"}`, "nats", Flags{Token: "t"}},
		"nkey":               {fmt.Sprintf("authorization: {users: [{nkey: %s}]}", public), "nats", Flags{NKey: seed}},
		"credentials":        {operator, "nats", Flags{Creds: creds}},
		"TLS":                {tls + "}", "tls", Flags{CA: a.file}},
		"TLS by server":      {tls + "}", "nats", Flags{CA: a.file}},
		"TLS from both":      {tls + fmt.Sprintf(", ca_file: %q, verify: true}", a.file), "tls", Flags{CA: a.file, Cert: cert, Key: key}},
		"TLS and a password": {tls + "}\n" + `authorization: {user: u, password: "p"}`, "tls", Flags{CA: a.file, User: "u", Password: "p"}},
	} {
		t.Run(name, func(t *testing.T) {
			at := serve(t, jetStream, c.config)
			scheme, user, _ := strings.Cut(c.scheme, "://")
			// The first of several servers is down.
			c.flags.URL = "nats://127.0.0.1:1," + scheme + "://" + user + at
			q, err := c.flags.Dial(t.Context(), someStore)
			if err != nil {
				t.Fatal(err)
			}
			if err := q.OpenRun(t.Context(), queue.Run{ID: "r", Class: "a"}); err != nil {
				t.Error(err)
			}
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Whoever can't get in, or finds no queue there, is told why in one sentence and what to
// do in another.
func TestRefused(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	cert, key := a.issue(t, "server", func(*x509.Certificate) {})
	wrongCert, wrongKey := a.issue(t, "elsewhere", func(c *x509.Certificate) { c.IPAddresses = nil })
	tls := func(cert, key string) string { return fmt.Sprintf("tls: {cert_file: %q, key_file: %q}", cert, key) }
	operator, _ := operator(t)
	seed, _ := nkey(t)
	user := `authorization: {user: u, password: "right"}`
	for name, c := range map[string]struct {
		config, scheme string
		flags          Flags
		want           error
		hint           string
	}{
		"wrong password":      {jetStream + "\n" + user, "nats", Flags{User: "u", Password: "wrong"}, natsqueue.ErrCredentials, "--nats-user"},
		"no password":         {jetStream + "\n" + user, "nats", Flags{}, natsqueue.ErrCredentials, "--nats-user"},
		"wrong token":         {jetStream + "\n" + `authorization: {token: "right"}`, "nats", Flags{Token: "wrong"}, natsqueue.ErrCredentials, "--nats-token"},
		"unknown nkey":        {jetStream + "\n" + user, "nats", Flags{NKey: seed}, natsqueue.ErrCredentials, "--nats-nkey"},
		"no credentials":      {jetStream + "\n" + operator, "nats", Flags{}, natsqueue.ErrCredentials, "--nats-creds"},
		"TLS that isn't":      {jetStream, "tls", Flags{}, natsqueue.ErrTLS, "tls://"},
		"unknown authority":   {jetStream + "\n" + tls(cert, key), "tls", Flags{CA: other.file}, natsqueue.ErrTLS, "--nats-ca"},
		"certificate of else": {jetStream + "\n" + tls(wrongCert, wrongKey), "tls", Flags{CA: a.file}, natsqueue.ErrTLS, "--nats-ca"},
		"no certificate of ours": {
			jetStream + "\n" + fmt.Sprintf("tls: {cert_file: %q, key_file: %q, ca_file: %q, verify: true}", cert, key, a.file), "tls",
			Flags{CA: a.file},
			natsqueue.ErrTLS, "--nats-cert",
		},
		"JetStream off": {"", "nats", Flags{}, natsqueue.ErrNoJetStream, "jetstream block"},
		"JetStream off for the account": {
			jetStream + "\n" + `accounts: {A: {users: [{user: u, password: "p"}]}, SYS: {users: [{user: s, password: "p"}]}}, system_account: SYS`, "nats",
			Flags{User: "u", Password: "p"},
			natsqueue.ErrNoJetStream, "for the account",
		},
		"may not": {
			jetStream + "\n" + `authorization: {users: [{user: u, password: "p", permissions: {publish: ["elsewhere.>"], subscribe: [">"]}}]}`, "nats",
			Flags{User: "u", Password: "p"},
			natsqueue.ErrPermission, "docs/nats.md",
		},
		"no cluster": {jetStream, "nats", Flags{Replicas: 3}, natsqueue.ErrReplicas, "--nats-replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			c.flags.URL = c.scheme + "://" + serve(t, c.config)
			q, err := c.flags.Dial(t.Context(), someStore)
			if err == nil {
				q.Close()
				t.Fatal("it was let in")
			}
			if !errors.Is(err, c.want) {
				t.Errorf("error %v; want %v", err, c.want)
			}
			wantSentence(t, err, c.hint, "wrong", "right")
		})
	}
}

// wantSentence wants an error of one line with a hint that names something, and with no
// secret in it.
func wantSentence(t *testing.T, err error, hint string, secrets ...string) {
	t.Helper()
	if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "NATS") {
		t.Errorf("error %q: want one line that speaks of NATS", err)
	}
	if !strings.Contains(advice(err), hint) {
		t.Errorf("error %v: the advice is %q, want one that says %q", err, advice(err), hint)
	}
	for _, s := range secrets {
		if strings.Contains(err.Error(), s) {
			t.Errorf("error %q tells a secret", err)
		}
	}
}

// Another store's server is refused by name.
func TestRefusesAnotherStore(t *testing.T) {
	f := Flags{URL: "nats://" + serve(t, jetStream)}
	q, err := f.Dial(t.Context(), someStore)
	if err != nil {
		t.Fatal(err)
	}
	q.Close()
	_, err = f.Dial(t.Context(), "another")
	if !errors.Is(err, queue.ErrConflict) || !strings.Contains(err.Error(), someStore) {
		t.Errorf("error %v; want %v that names the store", err, queue.ErrConflict)
	}
	wantSentence(t, err, "account of its own")
}

// Bad flags are found before anybody is asked.
func TestBadFlags(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(t, "client", func(*x509.Certificate) {})
	seed, _ := nkey(t)
	_, creds := operator(t)
	nothing := write(t, filepath.Join(t.TempDir(), "empty"), "")
	negative := -time.Second
	for want, f := range map[string]Flags{
		"--nats-ca: open /nowhere":                       {CA: "/nowhere"},
		"no certificate in it":                           {CA: nothing},
		"want both or none":                              {Cert: cert},
		"--nats-cert " + cert + ", --nats-key ":          {Cert: cert, Key: nothing},
		"--nats-creds: open /nowhere":                    {Creds: "/nowhere"},
		"holds no JWT and seed":                          {Creds: seed},
		"--nats-nkey: " + nothing:                        {NKey: nothing},
		"without --nats-user":                            {Password: "p"},
		"--nats-creds and --nats-nkey: want one of them": {Creds: creds, NKey: seed},
		"--nats-user and --nats-token: want one of them": {User: "u", Token: "t"},
		"--nats-replicas 2: want":                        {Replicas: 2},
		"--lease-settle -1s: want":                       {Settle: &negative},
		"--lease-ttl 1ms: want 1s to 1h":                 {TTL: time.Millisecond},
	} {
		f.URL = "nats://127.0.0.1:1"
		err := f.Check()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", f, err, want)
		}
		if ce, ok := errors.AsType[*app.CodeError](err); !ok || ce.Code != app.ExitUsage {
			t.Errorf("%v is not marked as bad input", err)
		}
	}
	good := Flags{URL: "nats://127.0.0.1:1", CA: a.file, Cert: cert, Key: key, Creds: creds, Replicas: 3}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

func TestSettle(t *testing.T) {
	for arg, want := range map[string]time.Duration{"": 10 * time.Second, "0s": -1, "3s": 3 * time.Second} {
		var f Flags
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Register(set)
		f.RegisterSettle(set)
		if arg != "" {
			if err := set.Parse([]string{"--lease-settle", arg}); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.config("s").LeaseSettle; got != want {
			t.Errorf("--lease-settle %q: settles for %v, want %v", arg, got, want)
		}
	}
	if got := (&Flags{}).config("s").LeaseSettle; got != 0 {
		t.Errorf("without the flag: settles for %v, want the default", got)
	}
}
