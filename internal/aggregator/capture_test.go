// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/internal/report"
)

func TestRunCaptures(t *testing.T) {
	r := memRun(t, 1, 1)
	prefix := r.keys.Prefix() + "services/"
	r.put(t, prefix+"w2/_capture.yaml", []byte("tail: 500\ncapture_reason: materialise_error\nservices:\n  api: {bytes: 3584}\n"))
	r.put(t, prefix+"w1/_capture.yaml", []byte("services: {api: {bytes: 1}, db: {bytes: lots}, web: {bytes: true}, x: 5}\n"))
	r.put(t, prefix+"w3/_capture.yaml", []byte("services: [1]\n"))
	r.put(t, prefix+"w4/_capture.yaml", []byte("services: {}\n"))
	r.put(t, prefix+"w5/deep/_capture.yaml", []byte("services: {api: {bytes: 7}}\n"))
	r.put(t, prefix+"_capture.yaml", []byte("services: {api: {bytes: 7}}\n"))
	r.put(t, prefix+"w2/api.log", []byte("log"))
	var log bytes.Buffer
	c := r.config(t)
	c.Log = zerolog.New(&log)
	agg, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	reason := "materialise_error"
	want := report.Captures{
		Captures: 2, TotalBytes: 3585, PerServiceBytes: map[string]int64{"api": 3585},
		Entries: []report.Capture{
			{Source: report.FromRun, TotalBytes: 1, Services: map[string]int64{"api": 1}},
			{Source: report.FromRun, TotalBytes: 3584, Services: map[string]int64{"api": 3584}, CaptureReason: &reason},
		},
	}
	if diff := cmp.Diff(want, agg.CapturedServiceLogs); diff != "" {
		t.Errorf("captures differ:\n%s", diff)
	}
	for _, word := range []string{"db", "web", `\"x\"`, "w3/_capture.yaml"} {
		if !strings.Contains(log.String(), word) {
			t.Errorf("log does not name %s:\n%s", word, log.String())
		}
	}
}

func FuzzParseCapture(f *testing.F) {
	f.Add([]byte("tail: 500\ncapture_reason: provision_error\nservices:\n  db: {bytes: 4096}\n"))
	f.Add([]byte("services: {a: {bytes: 9223372036854775807}, b: {bytes: -1}, c: {bytes: 0x10}}"))
	f.Add([]byte("&a [*a]"))
	f.Add([]byte("services: &s {a: *s}"))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, _, err := parseCapture(body)
		if err != nil {
			return
		}
		for name, n := range c.Services {
			if n < 0 {
				t.Errorf("%q has %d bytes", name, n)
			}
		}
		if c.Source != report.FromRun {
			t.Errorf("source %q", c.Source)
		}
	})
}
