// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/testenv"
)

// A service that looks whether there is an object and then writes it obeys conditions as
// long as one asks at a time. The test at the start has 32 ask at once, and finds it out.
func TestConditionsThatHoldForOneAtATime(t *testing.T) {
	l := newLab(t)
	client, put := l.client(t), ignore(t, l.server, "If-None-Match")
	var looked sync.WaitGroup // two have looked and found nothing
	looked.Add(2)
	var first sync.Mutex
	left := 2
	l.proxy.Inject(testenv.HTTPFault{
		Match: func(r *http.Request) bool { return puts(r) && r.Header.Get("If-None-Match") != "" },
		Do: func(p *testenv.FaultProxy, w http.ResponseWriter, r *http.Request) {
			key := strings.TrimPrefix(r.URL.Path, "/"+l.server.Bucket+"/")
			if _, err := client.HeadObject(r.Context(), &s3.HeadObjectInput{Bucket: &l.server.Bucket, Key: &key}); err == nil {
				testenv.Answer(http.StatusPreconditionFailed, "PreconditionFailed")(p, w, r)
				return
			}
			if strings.Contains(key, "/selftest/") {
				first.Lock()
				if left > 0 {
					left--
					looked.Done()
				}
				first.Unlock()
				looked.Wait()
			}
			put(p, w, r)
		},
	})
	s := opened(t, l.faulty())
	if _, err := s.Create(t.Context(), "k", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "k", nil); !errors.Is(err, bundle.ErrExists) {
		t.Fatalf("one at a time: error %v, want %v", err, bundle.ErrExists)
	}
	err := bundle.SelfTest(t.Context(), s)
	if !errors.Is(err, bundle.ErrNotAtomic) || !strings.Contains(err.Error(), s.URL()) {
		t.Errorf("error %v, want %v that names the store", err, bundle.ErrNotAtomic)
	}
}
