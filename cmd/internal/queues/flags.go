// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// Flags say where the queue is, how to get in, and how it is kept.
type Flags struct {
	URL                   string
	CA, Cert, Key         string // PEM files
	Creds, NKey           string // files
	User, Password, Token string
	Replicas              int
	TTL                   time.Duration // of a lease; the same for all processes of a queue
	// Settle is the queue's LeaseSettle. Who leases nothing leaves it out.
	Settle *time.Duration
	// Wait is how long a queue that can't be reached is waited for; OnWait is told why.
	Wait   time.Duration
	OnWait func(why error)
}

// Register adds the flags that every client of a queue has.
func (f *Flags) Register(set *pflag.FlagSet) {
	set.StringVar(&f.URL, "queue", "", Help)
	set.StringVar(&f.CA, "nats-ca", "", "PEM `file` of the authorities that the NATS server's certificate is checked by (default the system's)")
	set.StringVar(&f.Cert, "nats-cert", "", "PEM `file` of the certificate that is shown to the NATS server; goes with --nats-key")
	set.StringVar(&f.Key, "nats-key", "", "PEM `file` of that certificate's key")
	set.StringVar(&f.Creds, "nats-creds", "", "credentials `file` of a NATS user (JWT and seed)")
	set.StringVar(&f.NKey, "nats-nkey", "", "`file` with the seed of a NATS nkey")
	set.StringVar(&f.User, "nats-user", "", "NATS user `name`; goes with --nats-password")
	set.StringVar(&f.Password, "nats-password", "", "`password` of the NATS user; others on the machine don't see it in "+app.EnvName("nats-password"))
	set.StringVar(&f.Token, "nats-token", "", "NATS `token`; others on the machine don't see it in "+app.EnvName("nats-token"))
	set.IntVar(&f.Replicas, "nats-replicas", 0, "how many servers of the cluster keep each stream: 1, 3 or 5 (default what is there, 1 for what is new)")
	set.DurationVar(&f.TTL, "lease-ttl", 45*time.Second,
		"how long a trial stays a worker's that is not heard of; the same for submit and all workers of a queue")
}

// RegisterSettle adds what only who leases needs.
func (f *Flags) RegisterSettle(set *pflag.FlagSet) {
	f.Settle = set.Duration("lease-settle", 10*time.Second,
		"how long after a (re)connect, and after the leases were lost, their living holders come first")
}

// Check refuses what names no queue, and files that are not what they should be.
func (f *Flags) Check() error {
	if err := Check(f.URL); err != nil {
		return err
	}
	if _, err := f.options(); err != nil {
		return app.Usage(err)
	}
	if f.Settle != nil && *f.Settle < 0 {
		return app.Usage(fmt.Errorf("--lease-settle %s: want 0s or more", *f.Settle))
	}
	if f.TTL != 0 && (f.TTL < time.Second || f.TTL > time.Hour) {
		return app.Usage(fmt.Errorf("--lease-ttl %s: want 1s to 1h", f.TTL))
	}
	if err := f.config("any").WithDefaults().Validate(); err != nil {
		return app.Usage(fmt.Errorf("--nats-replicas %d: want 1, 3 or 5, or 0 for what is there", f.Replicas))
	}
	return nil
}

func (f *Flags) config(storeUUID string) natsqueue.Config {
	c := natsqueue.Config{Store: storeUUID, Replicas: f.Replicas, LeaseTTL: f.TTL, OpenWait: f.Wait, OnWait: f.OnWait}
	if f.Settle != nil {
		c.LeaseSettle = cmp.Or(max(*f.Settle, 0), -1) // 0 would be the default
	}
	return c
}

// options are what nats.go is told beyond the URL.
func (f *Flags) options() ([]nats.Option, error) {
	var opts []nats.Option
	add := func(o nats.Option) { opts = append(opts, o) }
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("--nats-ca: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--nats-ca: %s has no certificate in it: want PEM", f.CA)
		}
		add(nats.RootCAs(f.CA))
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("--nats-cert and --nats-key: want both or none")
	}
	if f.Cert != "" {
		if _, err := tls.LoadX509KeyPair(f.Cert, f.Key); err != nil {
			return nil, fmt.Errorf("--nats-cert %s, --nats-key %s: %w", f.Cert, f.Key, err)
		}
		add(nats.ClientCert(f.Cert, f.Key))
	}
	if ways := f.ways(); len(ways) > 1 {
		return nil, fmt.Errorf("%s: want one of them at most", strings.Join(ways, " and "))
	}
	if f.Password != "" && f.User == "" {
		return nil, errors.New("--nats-password without --nats-user: want both")
	}
	switch {
	case f.Creds != "":
		text, err := os.ReadFile(f.Creds)
		if err != nil {
			return nil, fmt.Errorf("--nats-creds: %w", err)
		}
		if !bytes.Contains(text, []byte("BEGIN NATS USER JWT")) || !bytes.Contains(text, []byte("BEGIN USER NKEY SEED")) {
			return nil, fmt.Errorf("--nats-creds: %s holds no JWT and seed of a user: want what nsc writes", f.Creds)
		}
		add(nats.UserCredentials(f.Creds))
	case f.NKey != "":
		o, err := nats.NkeyOptionFromSeed(f.NKey)
		if err != nil {
			return nil, fmt.Errorf("--nats-nkey: %s: %w", f.NKey, err)
		}
		add(o)
	case f.User != "":
		add(nats.UserInfo(f.User, f.Password))
	case f.Token != "":
		add(nats.Token(f.Token))
	}
	return opts, nil
}

// ways are the flags by which a user is named.
func (f *Flags) ways() (ways []string) {
	for _, w := range []struct{ flag, value string }{
		{"--nats-creds", f.Creds}, {"--nats-nkey", f.NKey}, {"--nats-user", f.User}, {"--nats-token", f.Token},
	} {
		if w.value != "" {
			ways = append(ways, w.flag)
		}
	}
	return ways
}
