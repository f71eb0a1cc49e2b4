// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/s3store"
	"github.com/tidemill/tidemill/internal/testenv"
)

const mib = 1 << 20

func noise(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{7})
	_, _ = rng.Read(b) // never fails
	return b
}

func smallParts(o *s3store.Options) { o.PartSize = 5 * mib }

// unseekable hides everything of a reader but Read.
type unseekable struct{ r io.Reader }

func (u unseekable) Read(p []byte) (int, error) { return u.r.Read(p) }

// parts counts those that went up.
func parts(seen []string) (n int) {
	for _, r := range seen {
		if strings.HasPrefix(r, "PUT ") && strings.Contains(r, "partNumber=") {
			n++
		}
	}
	return n
}

func TestSizesAroundParts(t *testing.T) {
	l := newLab(t)
	all := noise(16 * mib)
	for _, mode := range []string{s3store.WhenRequired, s3store.WhenSupported} {
		s := opened(t, l.faulty()+"&checksum="+mode, smallParts)
		for _, n := range []int{5*mib - 1, 5 * mib, 5*mib + 1, 10 * mib, 10*mib + 1, 16 * mib} {
			want := (n + 5*mib - 1) / (5 * mib)
			if want == 1 {
				want = 0 // one request, no parts
			}
			for kind, reader := range map[string]func() io.Reader{
				"file":       func() io.Reader { return bytes.NewReader(all[:n]) },
				"stream":     func() io.Reader { return unseekable{bytes.NewReader(all[:n])} },
				"odd stream": func() io.Reader { return unseekable{iotest.DataErrReader(bytes.NewReader(all[:n]))} },
			} {
				for _, size := range []int64{int64(n), -1} {
					name := fmt.Sprintf("%s/%d/%s/%d", mode, n, kind, size)
					l.proxy.Seen()
					if err := s.Put(t.Context(), "k", reader(), size); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if got := parts(l.proxy.Seen()); got != want {
						t.Errorf("%s: %d parts, want %d", name, got, want)
					}
					if got := read(t, s, "k"); got != string(all[:n]) {
						t.Errorf("%s: other bytes came back", name)
					}
				}
			}
		}
	}
}

// A file is cut where it stands, however large: nothing of it is held in memory.
func TestPutOfAFile(t *testing.T) {
	l := newLab(t)
	s := opened(t, l.faulty(), smallParts, func(o *s3store.Options) { o.Buffers = 1 })
	path := filepath.Join(t.TempDir(), "file")
	body := noise(12 * mib)
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(100, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "k", f, int64(len(body))-100); err != nil {
		t.Fatal(err)
	}
	if got := read(t, s, "k"); got != string(body[100:]) {
		t.Error("other bytes came back")
	}
	// A pipe is a file that can't be cut.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.Write(body)
		_ = w.Close()
	}()
	if err := s.Put(t.Context(), "piped", r, int64(len(body))); err != nil {
		t.Fatal(err)
	}
	if got := read(t, s, "piped"); got != string(body) {
		t.Error("other bytes came back from a pipe")
	}
}

// What goes wrong on the way leaves the old object, and no parts that somebody pays for.
func TestUploadsThatFail(t *testing.T) {
	broken := errors.New("the disk that is read broke")
	body := noise(12 * mib)
	part := func(n string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == n }
	}
	for name, c := range map[string]struct {
		reader io.Reader
		size   int64
		fault  testenv.HTTPFault
		is     error
	}{
		"the reader breaks":     {reader: io.MultiReader(bytes.NewReader(body), iotest.ErrReader(broken)), size: -1, is: broken},
		"too short":             {reader: unseekable{bytes.NewReader(body)}, size: int64(len(body)) + 1},
		"too long":              {reader: unseekable{bytes.NewReader(body)}, size: int64(len(body)) - 1},
		"too long by a part":    {reader: unseekable{bytes.NewReader(body)}, size: 5 * mib},
		"too long for a part":   {reader: unseekable{bytes.NewReader(body)}, size: 5*mib - 1},
		"a part is refused":     {size: -1, fault: testenv.HTTPFault{Match: part("2"), Do: testenv.Answer(http.StatusForbidden, "AccessDenied")}, is: bundle.ErrDenied},
		"a part never arrives":  {size: -1, fault: testenv.HTTPFault{Match: part("3"), Do: testenv.CutBefore()}, is: bundle.ErrUnavailable},
		"no room":               {size: -1, fault: testenv.HTTPFault{Match: part("1"), Do: testenv.Answer(http.StatusInsufficientStorage, "XMinioStorageFull")}, is: bundle.ErrNoSpace},
		"completion is refused": {size: -1, is: bundle.ErrUnavailable, fault: testenv.HTTPFault{Match: completes, Do: testenv.Answer(http.StatusInternalServerError, "InternalError")}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			s := opened(t, l.faulty(), smallParts)
			if err := s.Put(t.Context(), "k", strings.NewReader("old"), 3); err != nil {
				t.Fatal(err)
			}
			if c.fault.Do != nil {
				l.proxy.Inject(c.fault)
			}
			if c.reader == nil {
				c.reader = unseekable{bytes.NewReader(body)}
			}
			err := s.Put(t.Context(), "k", c.reader, c.size)
			if err == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v, want %v", err, c.is)
			}
			// A service may refuse to throw an upload away while it still takes a part.
			left, err := l.client(t).ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &l.server.Bucket, Prefix: &l.prefix})
			if err != nil {
				t.Fatal(err)
			}
			if len(left.Uploads) > 0 {
				t.Errorf("%d uploads are left", len(left.Uploads))
			}
			if got := read(t, s, "k"); got != "old" {
				t.Errorf("k holds %d bytes, want the old ones", len(got))
			}
			// All memory is back: the buffers suffice for as many puts as ever.
			for range 20 {
				if err := s.Put(t.Context(), "j", unseekable{strings.NewReader("x")}, -1); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func completes(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}

// The object is there, the answer was lost, and the upload is gone when it is asked for
// again.
func TestCompletionWhoseAnswerWasLost(t *testing.T) {
	l := newLab(t)
	s := opened(t, l.faulty(), smallParts)
	body := noise(6 * mib)
	count := l.proxy.Inject(testenv.HTTPFault{Match: completes, Times: 1, Do: testenv.CutAfter()})
	if err := s.Put(t.Context(), "k", bytes.NewReader(body), -1); err != nil {
		t.Fatal(err)
	}
	if count() != 1 {
		t.Error("no answer was lost")
	}
	if got := read(t, s, "k"); got != string(body) {
		t.Error("other bytes came back")
	}
}

// Many large puts at once share what memory there is, and all get done.
func TestManyLargePutsAtOnce(t *testing.T) {
	l := newLab(t)
	s := opened(t, l.direct(), smallParts, func(o *s3store.Options) { o.Buffers = 2 })
	body := noise(11 * mib)
	errs := make(chan error, 6)
	for i := range cap(errs) {
		go func() {
			errs <- s.Put(t.Context(), fmt.Sprint("k", i), unseekable{bytes.NewReader(body)}, int64(len(body)))
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	var keys []string
	for info, err := range s.List(t.Context(), "") {
		if err != nil || info.Size != int64(len(body)) {
			t.Errorf("%s has %d bytes, error %v", info.Key, info.Size, err)
		}
		keys = append(keys, info.Key)
	}
	if slices.Sort(keys); len(keys) != cap(errs) {
		t.Errorf("objects %q", keys)
	}
}
