// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

func TestBases(t *testing.T) {
	for name, row := range map[string]struct {
		dockerfile string
		want       []string
	}{
		"one":                       {"FROM ubuntu:24.04\nWORKDIR /app", []string{"ubuntu:24.04"}},
		"scratch":                   {"FROM scratch\n", nil},
		"stages":                    {"FROM a AS x\nfrom b as Y\nFROM x\nFROM y\nFROM a\n", []string{"a", "b"}},
		"a flag":                    {"FROM --platform=linux/amd64 a\n", []string{"a"}},
		"ARG":                       {"ARG V=1\nARG I=\"img\"\nFROM ${I}:$V\n", []string{"img:1"}},
		"a default":                 {"FROM ${I:-b}:${V:-2}\n", []string{"b:2"}},
		"an unknown variable":       {"ARG I\nFROM $I\nFROM b\n", []string{"b"}},
		"an ARG of a stage":         {"FROM a\nARG I=c\nFROM $I\n", []string{"a"}},
		"COPY from":                 {"FROM a AS x\nFROM b\nCOPY --from=x /y /z\nCOPY --from=0 /y /z\nCOPY --chown=1 --from=c:1 /y /z\n", []string{"a", "b", "c:1"}},
		"comments and continuation": {"# FROM no\n\nFROM \\\n# FROM neither\n  a \\\n  AS b\nRUN echo \\\n  FROM x\n", []string{"a"}},
		"another escape":            {"# escape=`\nFROM a\nRUN x `\nFROM y\n", []string{"a"}},
		"carriage returns":          {"FROM a\r\nFROM b\r\n", []string{"a", "b"}},
		"nothing":                   {"", nil},
		"a FROM of nothing":         {"FROM\nFROM --platform=x\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, bases([]byte(row.dockerfile))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzBases(f *testing.F) {
	f.Add([]byte("# escape=`\nARG A=1\nFROM --platform=x ${A:-b} AS c `\nCOPY --from=c x y"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, b := range bases(data) {
			if b == "" || b == "scratch" || strings.Contains(b, "$") {
				t.Errorf("base %q", b)
			}
		}
	})
}

// The sentences are engines', of several releases.
func TestClassify(t *testing.T) {
	for text, want := range map[string]kind{
		"toomanyrequests: You have reached your unauthenticated pull rate limit.":                                       limited,
		"error pulling image: unexpected status from HEAD request: 429 Too Many Requests":                               limited,
		"denied: Your rate limit was exceeded":                                                                          limited,
		"manifest for x:1 not found: manifest unknown: manifest unknown":                                                refused,
		"pull access denied for x, repository does not exist or may require 'docker login'":                             refused,
		"unauthorized: authentication required":                                                                         refused,
		"Head \"http://x/v2/y/manifests/1\": no basic auth credentials":                                                 refused,
		"no matching manifest for linux/arm64/v8 in the manifest list entries":                                          refused,
		"received unexpected HTTP status: 503 Service Unavailable":                                                      passing,
		"dial tcp 127.0.0.1:1: connect: connection refused":                                                             passing,
		"net/http: TLS handshake timeout":                                                                               passing,
		"dial tcp: lookup registry-1.docker.io: no such host":                                                           passing,
		"write /var/lib/docker/tmp/x: no space left on device":                                                          passing,
		"the engine's answer broke off: unexpected EOF":                                                                 passing,
		"filesystem layer verification failed for digest sha256:4299999999999999999999999999999999999999999999999999ab": passing,
	} {
		if got := classify(errors.New(text)); got.kind != want {
			t.Errorf("%q is %v; want %v", text, got.kind, want)
		}
	}
}

func TestErrorsBecomeProvisionErrors(t *testing.T) {
	err := fmt.Errorf("prepare: %w", &Error{Image: "x", Err: runtime.ErrCapacity, Hint: "wait", Permanent: true, Log: []byte("log"), Truncated: true, Code: 3})
	pe := Provision("trial", err)
	if pe.Stage != runtime.StageImage || pe.Name != "trial" || !pe.Permanent || !errors.Is(pe, runtime.ErrCapacity) {
		t.Errorf("%+v", pe)
	}
	if len(pe.Evidence.Services) != 1 {
		t.Fatalf("evidence %+v", pe.Evidence)
	}
	ev := pe.Evidence.Services[0]
	if ev.Service != BuildService || string(ev.Log) != "log" || !ev.Truncated || ev.ExitCode == nil || *ev.ExitCode != 3 {
		t.Errorf("evidence %+v", ev)
	}
	if plain := Provision("trial", errors.New("x")); plain.Permanent || len(plain.Evidence.Services) != 0 || plain.Err == nil {
		t.Errorf("%+v", plain)
	}
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := New(nil, Config{}); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	_, err := New(nil, Config{
		PullTimeout: -1, PullStall: -1, PullTries: -1, Backoff: time.Second, MaxBackoff: time.Millisecond, BuildTimeout: -1,
		Builds: -1, ContextBytes: -1, ContextEntries: -1, LogTail: -1, FailureMemory: -1, Budget: -1, Grace: -1,
	})
	for _, name := range []string{
		"pull timeout", "pull stall", "pull tries", "shorter than backoff", "build timeout", "builds", "context bytes",
		"context entries", "log tail", "failure memory", "budget", "grace",
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v; want it to name %s", err, name)
		}
	}
}

func TestBackoffGrowsToItsLimit(t *testing.T) {
	s := newStore(t, nil, func(c *Config) { c.Backoff, c.MaxBackoff = time.Second, 30*time.Second })
	for try, most := range map[int]time.Duration{1: 1 * time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 6: 30 * time.Second, 99: 30 * time.Second} {
		var longest time.Duration
		for range 1000 {
			longest = max(longest, s.backoff(try))
		}
		if longest > most || longest < most/2 {
			t.Errorf("the longest of 1000 waits after try %d is %v; want up to %v", try, longest, most)
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	for _, size := range []int{1, 7, 100} {
		l, all := &tail{size: size}, ""
		for i := range 50 {
			s := strings.Repeat(fmt.Sprint(i%10), i%13)
			l.WriteString(s)
			all += s
			if got, want := string(l.Bytes()), all[max(0, len(all)-size):]; got != want || l.cut != (len(all) > size) {
				t.Fatalf("size %d after %d: %q, cut %v; want %q", size, i, got, l.cut, want)
			}
			if len(l.data) > 2*size+13 {
				t.Fatalf("size %d: %d bytes are held", size, len(l.data))
			}
		}
	}
}

func TestReadStream(t *testing.T) {
	for name, row := range map[string]struct {
		stream string
		want   string
	}{
		"the end":         {`{"stream":"a"}{"status":"b"}`, ""},
		"an error":        {`{"stream":"a"}{"errorDetail":{"code":3,"message":"m"},"error":"m"}{"stream":"b"}`, "m"},
		"only a sentence": {`{"error":"m"}`, "m"},
		"a broken stream": {`{"stream":"a"}{"str`, "broke off"},
		"no JSON":         {`<html>`, "broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			err := readStream(strings.NewReader(row.stream), func(message) {})
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v; want %q", err, row.want)
			}
		})
	}
}
