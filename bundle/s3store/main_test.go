// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"testing"
	"time"

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
func hasty(o *s3store.Options) { o.Timeout = 500 * time.Millisecond }

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
