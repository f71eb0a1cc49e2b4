// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/bundle/s3store"
	"github.com/tidemill/tidemill/internal/testenv"
)

// openForWriting is what commands do.
func openForWriting(ctx context.Context, where string, change ...func(*s3store.Options)) error {
	opts, err := s3store.Parse(where)
	if err != nil {
		return err
	}
	opts.Attempts = 3
	for _, c := range change {
		c(&opts)
	}
	s, err := s3store.Open(ctx, opts)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := bundle.OpenIdentity(ctx, s); err != nil {
		return err
	}
	return bundle.SelfTest(ctx, s)
}

// What can be wrong with a place is said when it is opened, in a sentence, with what would
// be right.
func TestOpenRefuses(t *testing.T) {
	l := newLab(t)
	for name, c := range map[string]struct {
		where string
		env   map[string]string
		fault testenv.HTTPFault
		is    error // nil where there is no sentinel for it
		want  string
		// stalls: only then is a short timeout right; under load others need longer.
		stalls bool
	}{
		"no such bucket": {
			where: strings.Replace(l.direct(), l.server.Bucket, "no-such-bucket", 1),
			want:  `there is no bucket "no-such-bucket" at http://127.0.0.1`,
		},
		"an unknown access key": {
			env: map[string]string{"AWS_ACCESS_KEY_ID": "somebody-else"}, where: l.direct(),
			is: bundle.ErrDenied, want: "doesn't know the access key: are AWS_ACCESS_KEY_ID or the profile meant for it?",
		},
		"a wrong secret key": {
			env: map[string]string{"AWS_SECRET_ACCESS_KEY": "hush"}, where: l.direct(),
			is: bundle.ErrDenied, want: "the secret key is not that of the access key",
		},
		"no credentials": {
			env: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, where: l.direct(),
			is: bundle.ErrDenied, want: "no AWS credentials could be had; credentials come from AWS_ACCESS_KEY_ID",
		},
		"a profile that isn't there": {
			where: l.direct() + "&profile=nobody",
			want:  "the configuration of the AWS tools can't be used",
		},
		"nobody listens": {
			where: l.server.URL(l.prefix, "http://127.0.0.1:1"),
			is:    bundle.ErrUnavailable, want: "http://127.0.0.1:1 can't be reached: connection refused",
		},
		"http where https is written": {
			where: strings.Replace(l.direct(), url.QueryEscape("http://"), url.QueryEscape("https://"), 1),
			want:  "speaks http, not https: write http:// in the endpoint",
		},
		"no region of AWS": {
			where: "s3://" + l.server.Bucket,
			want:  "no region is given: set AWS_REGION",
		},
		"an endpoint with a password in the environment": {
			where: "s3://" + l.server.Bucket, env: map[string]string{"AWS_ENDPOINT_URL_S3": "http://me:hush@127.0.0.1:1"},
			want: "the endpoint has a user or password in it",
		},
		"a clock that is off": {
			fault: testenv.HTTPFault{Do: testenv.Answer(http.StatusForbidden, "RequestTimeTooSkewed")},
			is:    bundle.ErrDenied, want: "differ too much: set this one, for example with NTP",
		},
		"another region": {
			fault: testenv.HTTPFault{Do: func(p *testenv.FaultProxy, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Amz-Bucket-Region", "eu-central-1")
				testenv.Answer(http.StatusMovedPermanently, "PermanentRedirect")(p, w, r)
			}},
			want: "is not in region us-east-1 but in eu-central-1: write the right region=… in the store's URL",
		},
		"a session that has ended": {
			fault: testenv.HTTPFault{Do: testenv.Answer(http.StatusBadRequest, "ExpiredToken")},
			is:    bundle.ErrDenied, want: "the session has ended: sign in again",
		},
		"no right to list": {
			fault: testenv.HTTPFault{Match: gets, Do: testenv.Answer(http.StatusForbidden, "AccessDenied")},
			is:    bundle.ErrDenied, want: `the credentials may not list in bucket "` + l.server.Bucket + `": allow them s3:ListBucket there`,
		},
		"no right to write": {
			fault: testenv.HTTPFault{Match: puts, Do: testenv.Answer(http.StatusForbidden, "AccessDenied")},
			is:    bundle.ErrDenied, want: "may not create in bucket",
		},
		"a service that only reads": {
			fault: testenv.HTTPFault{Match: puts, Do: testenv.Answer(http.StatusMethodNotAllowed, "MethodNotAllowed")},
			is:    bundle.ErrDenied, want: "allows no create",
		},
		"no conditions": {
			fault: testenv.HTTPFault{Match: puts, Do: testenv.Answer(http.StatusNotImplemented, "NotImplemented")},
			is:    errors.ErrUnsupported, want: "can't do what create needs",
		},
		"conditions that are ignored": {
			fault: testenv.HTTPFault{Match: puts, Do: ignore(t, l.server, "If-None-Match")},
			is:    bundle.ErrNotAtomic, want: "of 32 writers created one key",
		},
		"something else than S3": {
			fault: testenv.HTTPFault{Do: func(_ *testenv.FaultProxy, w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }},
			want:  "doesn't speak S3: look at the endpoint: it answered 404",
		},
		"a service that never can": {
			fault: testenv.HTTPFault{Do: testenv.Answer(http.StatusServiceUnavailable, "SlowDown")},
			is:    bundle.ErrUnavailable, want: "it answered 503 SlowDown (injected), request r-1",
		},
		"a service that never answers": {
			fault: testenv.HTTPFault{Do: testenv.Stall()},
			is:    bundle.ErrUnavailable, want: "no answer within", stalls: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			if c.where == "" {
				c.where = l.faulty()
				defer l.proxy.Inject(c.fault)()
			}
			var change []func(*s3store.Options)
			if c.stalls {
				change = append(change, hasty)
			}
			err := openForWriting(t.Context(), c.where, change...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v; want %q in it", err, c.want)
			}
			t.Log(err)
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v; want %v", err, c.is)
			}
			for _, secret := range []string{"hush", "tidemill-test-secret"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("error %q shows a secret", err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q has more than one line", err)
			}
		})
	}
}

func puts(r *http.Request) bool { return r.Method == http.MethodPut }

func TestOpenCreatesTheBucketIfAsked(t *testing.T) {
	l := newLab(t)
	if l.server.AccessKey == "" {
		t.Skip("makes buckets only on a server of its own")
	}
	where := strings.Replace(l.direct(), l.server.Bucket, "made-on-demand", 1)
	for range 2 {
		s := opened(t, where+"&create_bucket=true")
		if strings.Contains(s.URL(), "create_bucket") {
			t.Errorf("URL %s asks for a bucket", s.URL())
		}
	}
	opened(t, where)
}

func TestOpenForReading(t *testing.T) {
	l := newLab(t)
	w := opened(t, l.direct())
	if _, err := w.Create(t.Context(), "k", []byte("x")); err != nil {
		t.Fatal(err)
	}
	r := opened(t, l.faulty(), func(o *s3store.Options) { o.ReadOnly = true })
	if got := read(t, r, "k"); got != "x" {
		t.Errorf("read %q", got)
	}
	l.proxy.Seen()
	_, err := r.Create(t.Context(), "new", nil)
	_, swapErr := r.Swap(t.Context(), "k", "v", nil)
	for call, err := range map[string]error{
		"create": err, "swap": swapErr, "put": r.Put(t.Context(), "k", strings.NewReader("y"), 1), "delete": r.Delete(t.Context(), "k"),
	} {
		if !errors.Is(err, bundle.ErrDenied) {
			t.Errorf("%s: error %v, want %v", call, err, bundle.ErrDenied)
		}
	}
	if seen := l.proxy.Seen(); len(seen) > 0 {
		t.Errorf("a store for reading made the requests %q", seen)
	}
}

// Region, endpoint and credentials come from where the AWS tools have them.
func TestTheConfigurationOfTheAWSTools(t *testing.T) {
	l := newLab(t)
	if l.server.AccessKey == "" {
		t.Skip("writes credentials only of a server of its own")
	}
	dir := t.TempDir()
	files := map[string]string{
		"config":      "[profile lab]\nregion = us-east-1\nendpoint_url = " + l.proxy.URL + "\n",
		"credentials": "[lab]\naws_access_key_id = " + l.server.AccessKey + "\naws_secret_access_key = " + l.server.SecretKey + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	agents := make(chan string, 100)
	l.proxy.Inject(testenv.HTTPFault{Match: func(r *http.Request) bool { agents <- r.UserAgent(); return false }})

	s := opened(t, "s3://"+l.server.Bucket+"/"+l.prefix+"?profile=lab", func(o *s3store.Options) { o.Version = "v1.2.3" })
	if _, err := s.Create(t.Context(), "k", []byte("x")); err != nil {
		t.Error(err)
	}
	if want := "s3://" + l.server.Bucket + "/" + l.prefix + "?endpoint=" + l.proxy.URL; s.URL() != want {
		t.Errorf("URL %s, want %s", s.URL(), want)
	}
	if agent := <-agents; !strings.Contains(agent, "tidemill/v1.2.3") {
		t.Errorf("user agent %q doesn't name tidemill", agent)
	}
	if seen := l.proxy.Seen(); len(seen) == 0 || !strings.HasPrefix(seen[0], "GET /"+l.server.Bucket+"?") {
		t.Errorf("requests %q; want the bucket in the path", seen)
	}
}
