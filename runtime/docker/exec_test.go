// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

// TestTextLikeTheEngines: what a program prints is never taken for the engine's own text,
// however much it looks like it.
func TestTextLikeTheEngines(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t))
	for _, text := range []string{
		"OCI runtime exec failed: exec failed: unable to start container process: exec: \"x\": not found: unknown\r\n",
		"a line of a terminal\r\n", "no end", "unable to find user x: no matching entries in passwd file\r\n",
	} {
		var out bytes.Buffer
		exit, err := sb.Exec(t.Context(), runtime.Command{
			Argv: []string{"sh", "-c", `printf %s "$1"; exit 127`, "sh", text}, Stdout: &out,
		})
		if err != nil || exit.Code != 127 || out.String() != text {
			t.Errorf("exit %+v, error %v, printed %q, want 127 and %q", exit, err, out.String(), text)
		}
	}
	// And the engine's never reaches a writer.
	var out bytes.Buffer
	if _, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"no-such-program"}, Stdout: &out, Stderr: &out}); err == nil || out.Len() > 0 {
		t.Errorf("a program that isn't there: error %v, printed %q", err, out.String())
	}
}

// TestClosedStreams: a program that closes its streams is waited for.
func TestClosedStreams(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t))
	exit, out := try(t, sb, "echo begins; exec >/app/log 2>&1; sleep 1; echo ends; exit 5")
	if exit.Code != 5 || out != "begins\n" {
		t.Errorf("exit %+v, printed %q", exit, out)
	}
	if got := sh(t, sb, "cat log"); got != "ends\n" {
		t.Errorf("the file has %q", got)
	}
}

// TestImageSettings: what the image says about programs holds, but for entrypoint, health
// check and PID 1.
func TestImageSettings(t *testing.T) {
	l := newLab(t)
	sb := l.open(t, l.runtime(t), func(s *runtime.Spec) { s.Env = map[string]string{"SPEC": "1"} })
	if got := sh(t, sb, `echo "$SPEC $HOME"; tr '\0' ' ' < /proc/1/cmdline`); !strings.HasPrefix(got, "1 /root\n"+toolPath) {
		t.Errorf("%q", got)
	}
	// No phase's variables are in PID 1's environment, where every phase's programs see them.
	if got := sh(t, sb, `tr '\0' '\n' < /proc/1/environ`); strings.Contains(got, "SPEC") {
		t.Errorf("PID 1 has %q", got)
	}
}

func BenchmarkExec(b *testing.B) {
	l := benchLab(b)
	rt := l.runtime(b)
	sb, err := tryOpen(b, rt, l.spec())
	if err != nil {
		b.Fatal(err)
	}
	defer sb.Close(b.Context())
	for b.Loop() {
		if exit, err := sb.Exec(b.Context(), runtime.Command{Argv: []string{"true"}}); err != nil || !exit.OK() {
			b.Fatal(exit, err)
		}
	}
}

func BenchmarkOpenClose(b *testing.B) {
	l := benchLab(b)
	rt := l.runtime(b)
	for b.Loop() {
		sb, err := tryOpen(b, rt, l.spec())
		if err != nil {
			b.Fatal(err)
		}
		if err := sb.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
