// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle/s3store"
	"github.com/tidemill/tidemill/internal/testenv"
)

// checksummed finds requests with what came into the protocol late: checksums beside the
// signature, and bodies in chunks that one trails.
func checksummed(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Checksum-") || name == "X-Amz-Sdk-Checksum-Algorithm" || name == "X-Amz-Trailer" {
			return true
		}
	}
	return strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked")
}

// A service that knows nothing of such checksums works by default; where they are asked
// for they are sent, and refused by it.
func TestServiceWithoutChecksums(t *testing.T) {
	l := newLab(t)
	refuses := testenv.HTTPFault{Match: checksummed, Do: testenv.Answer(http.StatusBadRequest, "InvalidArgument")}
	remove := l.proxy.Inject(refuses)
	body := noise(11 * mib)
	for _, where := range []string{l.faulty(), l.faulty() + "&checksum=" + s3store.WhenRequired} {
		if err := openForWriting(t.Context(), where); err != nil {
			t.Fatal(err)
		}
		s := opened(t, where, smallParts)
		if err := s.Put(t.Context(), "file", bytes.NewReader(body), int64(len(body))); err != nil {
			t.Errorf("put in parts: %v", err)
		}
		if err := s.Put(t.Context(), "stream", unseekable{bytes.NewReader(body)}, -1); err != nil {
			t.Errorf("put of a stream in parts: %v", err)
		}
		if err := s.Put(t.Context(), "small", unseekable{strings.NewReader("small")}, 5); err != nil {
			t.Errorf("put of a small stream: %v", err)
		}
		for key, want := range map[string]string{"file": string(body), "stream": string(body), "small": "small"} {
			if got := read(t, s, key); got != want {
				t.Errorf("%s: other bytes came back", key)
			}
			if err := s.Delete(t.Context(), key); err != nil {
				t.Errorf("delete: %v", err)
			}
		}
		v, err := s.Create(t.Context(), "swapped", []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Swap(t.Context(), "swapped", v, []byte("2")); err != nil {
			t.Errorf("swap: %v", err)
		}
		if err := s.Delete(t.Context(), "swapped"); err != nil {
			t.Error(err)
		}
	}
	if n := remove(); n != 0 {
		t.Errorf("%d requests had checksums that nobody asked for", n)
	}
	t.Run("asked for", func(t *testing.T) {
		remove := l.proxy.Inject(refuses)
		err := openForWriting(t.Context(), l.faulty()+"&checksum="+s3store.WhenSupported)
		if n := remove(); err == nil || n == 0 {
			t.Errorf("error %v after %d requests with checksums, want them refused", err, n)
		}
	})
}
