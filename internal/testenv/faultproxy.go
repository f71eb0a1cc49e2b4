// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// HTTPFault is a misbehaviour of a service, and the requests that it befalls.
type HTTPFault struct {
	// Match selects requests; nil means all.
	Match func(*http.Request) bool
	// After lets that many matching requests pass first.
	After int
	// Every is 1 for each matching request from then on, n for each nth. Default 1.
	Every int
	// Times is how many requests it befalls; 0 means all.
	Times int
	// Do is what happens.
	Do HTTPAction
}

// HTTPAction is what a fault does to a request.
type HTTPAction func(p *FaultProxy, w http.ResponseWriter, r *http.Request)

// Answer gives an answer in the place of the service, with an error in S3's form.
func Answer(status int, code string) HTTPAction {
	return func(_ *FaultProxy, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>injected</Message><RequestId>r-1</RequestId></Error>", code)
		}
	}
}

// CutBefore cuts the connection before the service sees the request.
func CutBefore() HTTPAction {
	return func(_ *FaultProxy, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cut(w)
	}
}

// CutAfter lets the service do what it is asked for, and cuts the connection in the place
// of the answer.
func CutAfter() HTTPAction {
	return func(p *FaultProxy, w http.ResponseWriter, r *http.Request) {
		p.forward.ServeHTTP(httptest.NewRecorder(), r)
		cut(w)
	}
}

// AnswerAfter lets the service do what it is asked for, and gives another answer.
func AnswerAfter(status int, code string) HTTPAction {
	return func(p *FaultProxy, w http.ResponseWriter, r *http.Request) {
		p.forward.ServeHTTP(httptest.NewRecorder(), r)
		Answer(status, code)(p, w, r)
	}
}

// Stall gives no answer until the client goes away, and never asks the service.
func Stall() HTTPAction {
	return func(_ *FaultProxy, _ http.ResponseWriter, r *http.Request) {
		// A client that goes away is noticed once its body was read.
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
}

// Truncate cuts the connection after n bytes of the answer's body.
func Truncate(n int64) HTTPAction {
	return func(p *FaultProxy, w http.ResponseWriter, r *http.Request) { p.partly(w, r, n, cut) }
}

// StallAt gives n bytes of the answer's body and then nothing, until the client goes away.
func StallAt(n int64) HTTPAction {
	return func(p *FaultProxy, w http.ResponseWriter, r *http.Request) {
		p.partly(w, r, n, func(http.ResponseWriter) { <-r.Context().Done() })
	}
}

// Delay lets the request through a little later.
func Delay(d time.Duration) HTTPAction {
	return func(p *FaultProxy, w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			p.forward.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// Forward lets a request through, for actions that tests make themselves.
func (p *FaultProxy) Forward(w http.ResponseWriter, r *http.Request) { p.forward.ServeHTTP(w, r) }

// Client returns one whose connections the test's end closes, for requests past the proxy.
func (p *FaultProxy) Client() *http.Client { return &http.Client{Transport: p.transport} }

// FaultProxy stands before a service and misbehaves on request.
type FaultProxy struct {
	URL       string
	forward   *httputil.ReverseProxy
	transport *http.Transport

	mu     sync.Mutex
	faults []*httpInjected
	seen   []string
}

type httpInjected struct {
	HTTPFault
	seen, hits int
}

// NewFaultProxy starts a proxy before the service at a URL. The test's end stops it.
func NewFaultProxy(t testing.TB, target string) *FaultProxy {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	p := &FaultProxy{transport: transport, forward: &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host // it is signed
		},
		// A client that went away is no news.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	srv := httptest.NewServer(p)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		transport.CloseIdleConnections()
	})
	p.URL = srv.URL
	return p
}

// Inject adds a fault and returns a function that takes it away and tells how many
// requests it befell. Of several that match a request the first counts.
func (p *FaultProxy) Inject(f HTTPFault) (remove func() int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := &httpInjected{HTTPFault: f}
	in.Every = max(in.Every, 1)
	p.faults = append(p.faults, in)
	return func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(p.faults, func(other *httpInjected) bool { return other == in })
		return in.hits
	}
}

// Seen returns the requests so far, as "PUT /bucket/key", and forgets them.
func (p *FaultProxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

// ServeHTTP implements [http.Handler].
func (p *FaultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if do := p.next(r); do != nil {
		do(p, w, r)
		return
	}
	p.forward.ServeHTTP(w, r)
}

func (p *FaultProxy) next(r *http.Request) HTTPAction {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, r.Method+" "+r.URL.RequestURI())
	for _, in := range p.faults {
		if in.Match != nil && !in.Match(r) {
			continue
		}
		in.seen++
		if n := in.seen - in.After; n > 0 && n%in.Every == 0 && (in.Times == 0 || in.hits < in.Times) {
			in.hits++
			return in.Do
		}
	}
	return nil
}

// partly forwards a request and gives the first bytes of the answer, in the announced
// length of the whole.
func (p *FaultProxy) partly(w http.ResponseWriter, r *http.Request, n int64, then func(http.ResponseWriter)) {
	p.forward.ServeHTTP(&partWriter{ResponseWriter: w, left: n, then: then}, r)
}

// partWriter lets so many bytes pass. It keeps none: an answer may be large, and tests
// look at what their process allocates.
type partWriter struct {
	http.ResponseWriter
	left int64
	then func(http.ResponseWriter)
}

var errEnough = errors.New("enough was given")

func (w *partWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b[:min(w.left, int64(len(b)))])
	w.left -= int64(n)
	if err != nil || n == len(b) {
		return n, err
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	w.then(w.ResponseWriter)
	return n, errEnough
}

// cut closes the connection under a request, with what has been written on its way.
func cut(w http.ResponseWriter) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = buf.Flush()
	_ = conn.Close()
}
