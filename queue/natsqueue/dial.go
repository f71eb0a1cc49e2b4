// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidemill/tidemill/queue"
)

// Reasons why a server is refused at start, beside those of the contract. They come
// wrapped in one sentence that names the server: compare with errors.Is.
var (
	// ErrCredentials: the server doesn't know who we are.
	ErrCredentials = errors.New("credentials refused")
	// ErrPermission: the server knows who we are, and forbids what the queue needs.
	ErrPermission = errors.New("permission denied")
	// ErrTLS: one side wants TLS and the other doesn't, or a certificate isn't trusted.
	ErrTLS = errors.New("TLS refused")
	// ErrNoJetStream: JetStream is off, on the server or for the account.
	ErrNoJetStream = errors.New("JetStream is disabled")
	// ErrTooOld: the server lacks what the queue needs.
	ErrTooOld = errors.New("server too old")
	// ErrClockSkew: the server's clock and ours are too far apart.
	ErrClockSkew = errors.New("clock skew")
	// ErrReplicas: the cluster can't keep as many copies as were asked for.
	ErrReplicas = errors.New("too few servers")
)

// Dial connects to the servers of a comma-separated URL list and opens the queue
// there. The options come after the ones that natsqueue needs; TLS and credentials
// go here. A server that can't be reached yet is waited for, for cfg.OpenWait. Close
// closes the connection.
func Dial(ctx context.Context, urls string, cfg Config, opts ...nats.Option) (*Queue, error) {
	cfg = cfg.WithDefaults()
	var denied complaint
	own := []nats.Option{
		nats.Name("tidemill"),
		// An outage may be longer than the default 60 attempts, and what was given
		// up in it must not be sent when it ends.
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1),
		// A server that is upgraded or has its users reloaded refuses us for a moment.
		nats.IgnoreAuthErrorAbort(),
		nats.Timeout(cfg.CallTimeout),
		// A server that is cut off says nothing, not even goodbye. By default that takes
		// minutes to notice, in which the leases would run out although other servers of
		// the cluster are there.
		nats.PingInterval(cfg.LeaseTTL / 9),
		nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied.note(err) }),
	}
	opts = append(own, opts...)
	var nc *nats.Conn
	q, err := patiently(ctx, cfg, func() (*Queue, error) {
		if nc == nil {
			var err error
			if nc, err = nats.Connect(urls, opts...); err != nil {
				nc = nil
				return nil, refusal(urls, err)
			}
		}
		q, err := Open(ctx, nc, cfg)
		// What is forbidden is not answered: the request only runs out of time.
		if why := denied.get(); why != nil && errors.Is(err, queue.ErrUnreachable) {
			return nil, fmt.Errorf("%w: NATS at %s forbids this user what the queue needs: %w", ErrPermission, Redact(nc.ConnectedUrl()), why)
		}
		return q, err
	})
	if err != nil {
		if nc != nil {
			nc.Close()
		}
		return nil, err
	}
	q.owns = true
	return q, nil
}

const (
	openPause  = 500 * time.Millisecond // between two tries to open a queue
	firstWord  = 2 * time.Second        // from the first word of a wait to the second; then twice as long each time
	rarestWord = 16 * time.Second
)

// patiently tries again while the queue can't be reached: a server that is not there yet,
// or an election. What a server refuses by name it refuses at once.
func patiently(ctx context.Context, cfg Config, try func() (*Queue, error)) (*Queue, error) {
	deadline := time.Now().Add(cfg.OpenWait)
	var spoke time.Time
	silence := firstWord
	for {
		q, err := try()
		if err == nil || ctx.Err() != nil || !errors.Is(err, queue.ErrUnreachable) {
			return q, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, err
		}
		if cfg.OnWait != nil && (spoke.IsZero() || time.Since(spoke) >= silence) {
			if !spoke.IsZero() {
				silence = min(2*silence, rarestWord)
			}
			spoke = time.Now()
			cfg.OnWait(err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(openPause, left)): // nothing tells that a leader was elected, or a server started
		}
	}
}

// refusal says in one sentence why there is no connection.
func refusal(urls string, err error) error {
	at := Redact(urls)
	var notTLS tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var expired x509.CertificateInvalidError
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrNkeysNotSupported):
		return fmt.Errorf("%w: NATS at %s does not accept the credentials: %w", ErrCredentials, at, err)
	case errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted), errors.As(err, &notTLS),
		errors.As(err, &unknown), errors.As(err, &wrongName), errors.As(err, &expired),
		strings.Contains(err.Error(), "remote error: tls"), strings.Contains(err.Error(), "nats: tls error"):
		return fmt.Errorf("%w: no TLS connection to NATS at %s: %w", ErrTLS, at, err)
	case errors.Is(err, nats.ErrNoServers), strings.Contains(err.Error(), "dial tcp"), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("%w: nobody answers as NATS at %s: %w", queue.ErrUnreachable, at, err)
	}
	return fmt.Errorf("%w: connect to NATS at %s: %w", queue.ErrUnreachable, at, err)
}

// complaint keeps the first permission that the server denied.
type complaint struct {
	mu  sync.Mutex
	err error
}

func (c *complaint) note(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *complaint) get() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Redact removes user and password from a comma-separated list of URLs.
func Redact(urls string) string {
	parts := strings.Split(urls, ",")
	for i, p := range parts {
		if u, err := url.Parse(strings.TrimSpace(p)); err == nil && u.User != nil {
			u.User = url.User("xxxxx")
			parts[i] = u.String()
		}
	}
	return strings.Join(parts, ",")
}
