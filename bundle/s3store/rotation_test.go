// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/testenv"
)

// Credentials that end, as those of a container's role do, are renewed while the store is
// open: no call sees that the old ones have ended.
func TestCredentialsAreRenewed(t *testing.T) {
	l := newLab(t)
	if l.server.AccessKey == "" {
		t.Skip("needs to know the credentials of the server")
	}
	var now atomic.Int64 // number of the credentials that are good
	now.Store(1)
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"AccessKeyId": "ROLE-%d", "SecretAccessKey": "s", "Token": "t", "Expiration": %q}`,
			now.Load(), time.Now().Add(time.Minute).UTC().Format(time.RFC3339)) // so close that they are asked for anew
	}))
	defer role.Close()
	signAnew := ignore(t, l.server, "X-Amz-Security-Token") // the server knows nothing of roles
	var refused atomic.Int64
	l.proxy.Inject(testenv.HTTPFault{Do: func(p *testenv.FaultProxy, w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), fmt.Sprintf("Credential=ROLE-%d/", now.Load())) {
			refused.Add(1)
			testenv.Answer(http.StatusBadRequest, "ExpiredToken")(p, w, r)
			return
		}
		signAnew(p, w, r)
	}})
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.URL)

	s := opened(t, l.faulty())
	for n := range 3 {
		key := fmt.Sprint("k", n)
		v, err := s.Create(t.Context(), key, []byte("x"))
		if err != nil {
			t.Fatalf("create with credentials %d: %v", n+1, err)
		}
		if _, err := s.Swap(t.Context(), key, v, []byte("y")); err != nil {
			t.Fatalf("swap with credentials %d: %v", n+1, err)
		}
		if got := read(t, s, key); got != "y" {
			t.Errorf("%s holds %q", key, got)
		}
		now.Add(1)
	}
	if n := refused.Load(); n != 0 {
		t.Errorf("%d requests were made with credentials that had ended", n)
	}
}
