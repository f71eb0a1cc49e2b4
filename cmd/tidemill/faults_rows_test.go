// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/testenv"
)

// fault is a row of the gallery's data sets: what goes wrong, and what is seen of it. The
// runs are compared with it, and docs/faults.md is made of it.
type fault struct {
	ID     string  `json:"id"`
	Fault  string  `json:"fault"` // a sentence
	How    string  `json:"how"`   // how it is provoked
	Expect seen    `json:"expect"`
	Look   []place `json:"look"`
}

// seen is what is expected of a trial.
type seen struct {
	Status            bundle.Status       `json:"status"`
	TerminationReason string              `json:"termination_reason"`
	FailureClass      bundle.FailureClass `json:"failure_class"`
	Flags             []string            `json:"flags"`
	Score             *float64            `json:"score"` // null: none
	Attempts          int                 `json:"attempts"`
	Detail            string              `json:"detail"` // is in the outcome's; empty: there is none to see
}

// place is a file of the bundle and what stands in it, spaces aside.
type place struct {
	File string `json:"file"`
	Text string `json:"text"`
	Hex  string `json:"hex"` // in place of Text, for bytes that are no text
}

// in reports whether a file has what should stand in it.
func (p place) in(body []byte) (bool, error) {
	if p.Hex != "" {
		want, err := hex.DecodeString(p.Hex)
		return bytes.Contains(body, want), err
	}
	return strings.Contains(spaced(string(body)), spaced(p.Text)), nil
}

func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// kind is what a fault's id begins with.
func (f fault) kind() string {
	kind, _, _ := strings.Cut(f.ID, "/")
	return kind
}

// gallery is where the example lies.
func gallery(t testing.TB) string { return filepath.Join(testenv.Root(t), "examples", "faults") }

// faults reads all rows, in order.
func faults(t testing.TB) []fault {
	t.Helper()
	var all []fault
	for _, pack := range []string{"pack", "scripted"} {
		body, err := os.ReadFile(filepath.Join(gallery(t), pack, "tasks.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(body)) {
			var f fault
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatalf("%s/tasks.jsonl: %v\n%s", pack, err, line)
			}
			if f.ID == "" || f.Fault == "" || f.How == "" || f.Expect.Status == "" || f.Expect.Attempts == 0 || len(f.Look) == 0 {
				t.Fatalf("%s/tasks.jsonl: a row that doesn't say what is seen: %s", pack, line)
			}
			all = append(all, f)
		}
	}
	return all
}
