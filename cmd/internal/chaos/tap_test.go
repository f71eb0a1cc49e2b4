// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/testenv"
)

// tap is the way of the workers to the store. It notes when claims and commits pass, and
// behind it is the proxy that misbehaves.
type tap struct {
	proxy *testenv.FaultProxy
	url   string

	mu       sync.Mutex
	claims   map[string]map[int]time.Time // by trial and attempt: when it was asked for
	commits  map[string]time.Time         // by trial
	requests int
}

// Parts of keys; see bundle.Keys.
const (
	claimsPart  = "/attempts/"
	commitsPart = "/commits/"
)

func newTap(t *testing.T, endpoint string) *tap {
	p := &tap{proxy: testenv.NewFaultProxy(t, endpoint), claims: map[string]map[int]time.Time{}, commits: map[string]time.Time{}}
	srv := httptest.NewServer(p)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	p.url = srv.URL
	return p
}

// ServeHTTP implements [http.Handler].
func (p *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := time.Now()
	p.mu.Lock()
	p.requests++
	p.mu.Unlock()
	seen := &seen{ResponseWriter: w}
	p.proxy.ServeHTTP(seen, r)
	// Without an answer nobody knows: what is wrong here is only early or late by a request.
	if r.Method == http.MethodPut && (seen.status == http.StatusOK || seen.status == 0) {
		p.note(r.URL.Path, asked)
	}
}

func (p *tap) note(path string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := strings.LastIndex(path, commitsPart); i >= 0 {
		if trial, _, ok := bundle.ParseCommitKey(path); ok {
			if _, known := p.commits[trial]; !known {
				p.commits[trial] = at
			}
		}
		return
	}
	_, rest, found := strings.Cut(path, claimsPart)
	if !found {
		return
	}
	trial, name, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(strings.TrimSuffix(name, ".json"))
	if err != nil { // an end, or a request of another kind
		return
	}
	if p.claims[trial] == nil {
		p.claims[trial] = map[int]time.Time{}
	}
	if _, known := p.claims[trial][n]; !known {
		p.claims[trial][n] = at
	}
}

// committed is how many trials have a commit, as far as requests tell.
func (p *tap) committed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.commits)
}

// claimed is when an attempt was claimed.
func (p *tap) claimed(trial string, attempt int) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.claims[trial][attempt]
	return at, ok
}

func (p *tap) served() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// seen remembers the status of an answer.
type seen struct {
	http.ResponseWriter
	status int
}

func (s *seen) WriteHeader(status int) {
	if s.status == 0 && status >= 200 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *seen) Write(b []byte) (int, error) {
	if s.status == 0 {
		s.status = http.StatusOK
	}
	return s.ResponseWriter.Write(b)
}

// Unwrap lets the proxy flush and take connections over.
func (s *seen) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func TestTapNotes(t *testing.T) {
	p := &tap{claims: map[string]map[int]time.Time{}, commits: map[string]time.Time{}}
	trial := strings.Repeat("ab", 16)
	first, later := time.Unix(1, 0), time.Unix(2, 0)
	k := bundle.Keys{Run: "r"}
	for _, key := range []string{k.Claim(trial, 1), k.AttemptEnd(trial, 1), k.RunFile(), k.Result("t", 0)} {
		p.note("/bucket/prefix/"+key, first)
	}
	p.note("/bucket/prefix/"+k.Claim(trial, 1), later)
	if at, ok := p.claimed(trial, 1); !ok || !at.Equal(first) {
		t.Errorf("claim at %v, %t; want the first", at, ok)
	}
	if n := p.committed(); n != 0 {
		t.Errorf("%d commits before there was one", n)
	}
	p.note("/bucket/prefix/"+k.Commit(trial, 1), later)
	p.note("/bucket/prefix/"+k.Commit(trial, 2), later)
	if n := p.committed(); n != 1 {
		t.Errorf("%d commits, want those of one trial", n)
	}
}
