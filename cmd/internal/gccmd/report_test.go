// SPDX-License-Identifier: Apache-2.0

package gccmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/internal/sweep"
	"github.com/tidemill/tidemill/runtime"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func item(kind, trial string, age time.Duration, v sweep.Verdict) sweep.Item {
	r := runtime.Resource{
		Handle: runtime.Handle{Runtime: "docker", Kind: kind, ID: kind + "-id"}, Name: trial,
		Labels: runtime.Labels{Run: "r", Task: "t", Trial: trial, Attempt: 2},
	}
	if age > 0 {
		r.Created = noon.Add(-age)
	}
	return sweep.Item{Source: "docker", Resource: r, Verdict: v}
}

func TestReport(t *testing.T) {
	r := newReport(&ground{store: "s"}, false, noon)
	gone := sweep.Verdict{Goes: true, Why: "its maker is gone"}
	r.add(item("volume", "0123456789abcdef", 3*time.Hour+12*time.Minute+5*time.Second, gone), nil)
	r.add(item("network", "short", 50*time.Hour, gone), errors.New("it is in use"))
	r.add(item("container", "\x1b[31mevil", 0, sweep.Verdict{Why: "its maker lives"}), nil)
	r.addPruned(runtime.Pruned{Kind: "image", ID: "sha256:1", Bytes: 5, Used: noon.Add(-90 * time.Second), Why: "nothing uses it"})
	var out bytes.Buffer
	if err := r.print(&out, false); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"KIND TRIAL RUN AGE FATE WHY",
		"container", // what a label says does nothing to a terminal
		"image sha256:1 - 1m30s removed nothing uses it",
		"network short r 2d failed it is in use",
		"volume 0123456789ab r 3h12m removed its maker is gone",
		"2 removed, 1 stay, 1 failed",
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), &out)
	}
	for i, line := range lines {
		if got := strings.Join(strings.Fields(line), " "); !strings.HasPrefix(got, want[i]) {
			t.Errorf("line %d is %q; want %q", i, got, want[i])
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("a label reaches the terminal:\n%q", &out)
	}
	out.Reset()
	if err := r.print(&out, true); err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back.Items) != 4 || back.Go != 2 || back.Stay != 1 || back.Failed != 1 {
		t.Errorf("as JSON %+v, %v", back, err)
	}
	if l := back.Items[2]; l.Fate != failed || l.Error != "it is in use" || l.TrialIndex == nil || l.Attempt != 2 {
		t.Errorf("the network is %+v", l)
	}
}

func TestSizesOfImages(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "0": -1, "20GiB": 20 << 30} {
		o := options{imageBudget: text}
		if err := o.check(); err != nil || o.budget != want {
			t.Errorf("%q: %d, %v; want %d", text, o.budget, err, want)
		}
	}
}
