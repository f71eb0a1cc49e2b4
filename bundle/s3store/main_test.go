// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/s3store"
	"github.com/tidemill/tidemill/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the store of a URL, with options that a URL doesn't have.
func open(t testing.TB, where string, change ...func(*s3store.Options)) *s3store.Store {
	t.Helper()
	opts, err := s3store.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(&opts)
	}
	s, err := s3store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// opened is open, and closes the store when the test ends.
func opened(t testing.TB, where string, change ...func(*s3store.Options)) *s3store.Store {
	t.Helper()
	s := open(t, where, change...)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// hasty gives up on what stalls before a test's patience ends.
func hasty(o *s3store.Options) { o.Timeout = time.Second }

func read(t testing.TB, s bundle.Store, key string) string {
	t.Helper()
	body, err := bundle.ReadObject(t.Context(), s, key, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// lab is a server with a faulty proxy before it, and a place for a store.
type lab struct {
	server testenv.S3Server
	proxy  *testenv.FaultProxy
	prefix string
}

func newLab(t testing.TB) lab {
	t.Helper()
	server := testenv.S3(t)
	return lab{server: server, proxy: testenv.NewFaultProxy(t, server.Endpoint), prefix: server.Prefix()}
}

// faulty is the URL by way of the proxy.
func (l lab) faulty() string { return l.server.URL(l.prefix, l.proxy.URL) }

// direct is the URL of the same store without it.
func (l lab) direct() string { return l.server.URL(l.prefix, "") }

// client is the SDK's own, past the proxy: for what a store can't do or see.
func (l lab) client(t testing.TB) *s3.Client {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion("us-east-1"))
	if err != nil {
		t.Fatal(err)
	}
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle, o.HTTPClient = &l.server.Endpoint, true, l.proxy.Client()
	})
}

// ignore makes the service blind to headers, as one that doesn't know conditions is. They
// are signed, so the request is signed anew.
func ignore(t testing.TB, server testenv.S3Server, headers ...string) testenv.HTTPAction {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(server.Region))
	if err != nil {
		t.Fatal(err)
	}
	return func(p *testenv.FaultProxy, w http.ResponseWriter, r *http.Request) {
		for _, h := range headers {
			r.Header.Del(h)
		}
		if err := sign(r, cfg); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		p.Forward(w, r)
	}
}

func sign(r *http.Request, cfg aws.Config) error {
	credentials, err := cfg.Credentials.Retrieve(r.Context())
	if err != nil {
		return err
	}
	// Only what S3 wants to be signed: the others may change on their way.
	bare := r.Clone(r.Context())
	bare.URL.Scheme, bare.URL.Host = "http", r.Host
	bare.Header = http.Header{}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Amz-") {
			bare.Header[name] = values
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	err = signer.SignHTTP(r.Context(), credentials, bare, r.Header.Get("X-Amz-Content-Sha256"), "s3", cfg.Region, time.Now())
	r.Header.Set("Authorization", bare.Header.Get("Authorization"))
	r.Header.Set("X-Amz-Date", bare.Header.Get("X-Amz-Date"))
	return err
}
