// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"net/http"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/bundletest"
	"github.com/tidemill/tidemill/internal/testenv"
)

// suite runs it with stores in the bucket, each at a URL of its own with options behind it.
func suite(t *testing.T, server testenv.S3Server, endpoint, options string) {
	urls := map[bundle.Store]string{}
	bundletest.Run(t, bundletest.Harness{
		Open: func(t *testing.T) bundle.Store {
			where := server.URL(server.Prefix(), endpoint) + options
			s := open(t, where)
			urls[s] = where
			return s
		},
		Second: func(t *testing.T, first bundle.Store) bundle.Store { return open(t, urls[first]) },
	})
}

func TestStore(t *testing.T) {
	server := testenv.S3(t)
	suite(t, server, "", "")
}

// TestStoreWithFaults runs the suite while the service is as bad as one may get: one
// request in 20 is told to come back later, and of others the answer is lost although they
// were obeyed, or breaks off. Nobody who uses the store may notice.
func TestStoreWithFaults(t *testing.T) {
	server := testenv.S3(t)
	proxy := testenv.NewFaultProxy(t, server.Endpoint)
	var counts []func() int
	for _, f := range []testenv.HTTPFault{
		{Every: 20, Do: testenv.Answer(http.StatusServiceUnavailable, "SlowDown")},
		{Every: 23, Match: writes, Do: testenv.CutAfter()},
		{Every: 31, Match: func(r *http.Request) bool { return r.Header.Get("If-Match") == "" }, Do: testenv.CutBefore()},
		{Every: 29, Match: writes, Do: testenv.AnswerAfter(http.StatusInternalServerError, "InternalError")},
		{Every: 17, Match: gets, Do: testenv.Truncate(50)},
	} {
		counts = append(counts, proxy.Inject(f))
	}
	suite(t, server, proxy.URL, "")
	for i, count := range counts {
		if count() == 0 {
			t.Errorf("fault %d never happened", i)
		}
	}
}

// writes are those of which a lost answer can be made good. Of a swap it can't, once
// somebody else has swapped: that is an error, which the suite doesn't expect.
func writes(r *http.Request) bool {
	return (r.Method == http.MethodPut || r.Method == http.MethodPost) && r.Header.Get("If-Match") == ""
}

func gets(r *http.Request) bool { return r.Method == http.MethodGet }
