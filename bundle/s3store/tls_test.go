// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A service whose certificate is signed by an authority of one's own is trusted when
// AWS_CA_BUNDLE names that, and else refused.
func TestOverTLS(t *testing.T) {
	l := newLab(t)
	srv := httptest.NewUnstartedServer(l.proxy)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	where := l.server.URL(l.prefix, srv.URL)
	err := openForWriting(t.Context(), where)
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "\n") {
		t.Errorf("with a certificate of nobody we know: error %v", err)
	}
	t.Log(err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", file)
	if err := openForWriting(t.Context(), where); err != nil {
		t.Errorf("with AWS_CA_BUNDLE: %v", err)
	}
	s := opened(t, where)
	if err := s.Put(t.Context(), "k", unseekable{strings.NewReader("hello")}, -1); err != nil {
		t.Error(err)
	}
	if got := read(t, s, "k"); got != "hello" {
		t.Errorf("k holds %q", got)
	}
}
