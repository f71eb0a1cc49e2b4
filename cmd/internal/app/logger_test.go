// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"strings"
	"testing"
)

func TestLoggerFormats(t *testing.T) {
	for name, c := range map[string]struct {
		flags LogFlags
		want  string
		never string
	}{
		"JSON where nobody looks": {LogFlags{"warn", "auto"}, `{"level":"warn","run_id":"r","time":"`, "details"},
		"JSON on request":         {LogFlags{"warn", "json"}, `{"level":"warn","run_id":"r","time":"`, "details"},
		"text on request":         {LogFlags{"warn", "text"}, "WRN beware run_id=r", "\x1b"},
		"all of it":               {LogFlags{"debug", "json"}, "details", "nothing"},
		"almost nothing":          {LogFlags{"error", "json"}, "", "beware"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log, err := c.flags.Logger(&out)
			if err != nil {
				t.Fatal(err)
			}
			log.Debug().Msg("details")
			log.Warn().Str("run_id", "r").Msg("beware")
			if got := out.String(); !strings.Contains(got, c.want) || strings.Contains(got, c.never) {
				t.Errorf("logged %q; want %q in it and never %q", got, c.want, c.never)
			}
		})
	}
	for _, bad := range []LogFlags{{"loud", "auto"}, {"", "auto"}, {"trace", "auto"}, {"warn", "xml"}} {
		if _, err := bad.Logger(&bytes.Buffer{}); codeOf(t.Context(), err) != ExitUsage {
			t.Errorf("%+v: %v; want a usage error", bad, err)
		}
	}
}

type screen struct{ bytes.Buffer }

func (*screen) IsTerminal() bool { return true }

func TestColorIsForTerminalsThatWantIt(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if Color(&bytes.Buffer{}) {
		t.Error("a buffer has colours")
	}
	if !Color(&screen{}) {
		t.Error("a terminal has none")
	}
	t.Setenv("NO_COLOR", "1")
	if Color(&screen{}) {
		t.Error("NO_COLOR has no effect")
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if Color(&screen{}) {
		t.Error("a dumb terminal has colours")
	}
}
