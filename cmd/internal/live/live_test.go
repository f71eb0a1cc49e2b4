// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// command plays a sandbox's part.
type command func(ctx context.Context, cmd runtime.Command) (runtime.Exit, error)

// over runs a command over a connection, as client and server do.
func over(ctx context.Context, t *testing.T, run command, stdin io.Reader) (exit runtime.Exit, stdout, stderr string, err error) {
	t.Helper()
	client, server := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		serve(context.WithoutCancel(ctx), server, server, run, Spec{Argv: []string{"program"}, Dir: "sub", Service: "db"})
	}()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	sent := make(chan struct{})
	s := newSender(client)
	go func() {
		defer close(sent)
		s.send(stdin)
	}()
	var o, e bytes.Buffer
	exit, err = receive(client, s, &o, &e)
	s.stop()
	client.Close()
	<-served
	<-sent
	return exit, o.String(), e.String(), err
}

func TestExecPassesStreamsAndExitOn(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", maxFrame/4)
	exit, stdout, stderr, err := over(t.Context(), t, func(_ context.Context, cmd runtime.Command) (runtime.Exit, error) {
		if cmd.Argv[0] != "program" || cmd.Dir != "sub" || cmd.Service != "db" {
			t.Errorf("command %+v", cmd)
		}
		if _, err := io.Copy(cmd.Stdout, cmd.Stdin); err != nil {
			t.Error(err)
		}
		_, err := io.WriteString(cmd.Stderr, "oops\n")
		return runtime.Exit{Code: 137, Signal: "SIGKILL"}, err
	}, strings.NewReader(big))
	if err != nil || exit.Code != 137 || exit.Signal != "SIGKILL" || stdout != big || stderr != "oops\n" {
		t.Errorf("exit %+v, %v, %d bytes of stdout, stderr %q", exit, err, len(stdout), stderr)
	}
}

func TestExecOfAProgramThatReadsNothing(t *testing.T) {
	exit, _, _, err := over(t.Context(), t, func(context.Context, runtime.Command) (runtime.Exit, error) {
		return runtime.Exit{Code: 3}, nil
	}, strings.NewReader(strings.Repeat("unread", maxFrame)))
	if err != nil || exit.Code != 3 {
		t.Errorf("exit %+v, %v", exit, err)
	}
}

func TestExecWithoutAnExitCode(t *testing.T) {
	for name, c := range map[string]struct {
		err                error
		notStarted, isGone bool
	}{
		"no such program": {err: &runtime.StartError{Argv: []string{"x"}, Err: errors.New("not found")}, notStarted: true},
		"closed under it": {err: runtime.ErrClosed, isGone: true},
		"lost under it":   {err: runtime.ErrLost, isGone: true},
		"other trouble":   {err: errors.New("the disk is on fire")},
	} {
		_, _, _, err := over(t.Context(), t, func(context.Context, runtime.Command) (runtime.Exit, error) {
			return runtime.Exit{}, c.err
		}, nil)
		got, ok := errors.AsType[*StreamError](err)
		if !ok || got.NotStarted != c.notStarted || got.Gone != c.isGone || got.Text != c.err.Error() {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

// A client that goes takes its command along, also one that reads nothing of what it is
// sent.
func TestExecEndsWithItsClient(t *testing.T) {
	for name, stdin := range map[string]io.Reader{"no stdin": nil, "stdin that isn't read": strings.NewReader(strings.Repeat("x", 5*maxFrame))} {
		ctx, cancel := context.WithCancel(t.Context())
		var why error
		_, _, _, err := over(ctx, t, func(run context.Context, _ runtime.Command) (runtime.Exit, error) {
			cancel()
			<-run.Done()
			why = context.Cause(run)
			return runtime.Exit{}, why
		}, stdin)
		if err == nil || !errors.Is(why, errClientGone) {
			t.Errorf("%s: client %v, command %v; want %v", name, err, why, errClientGone)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	var b bytes.Buffer
	_ = (&framer{w: &b}).write(stdoutData, []byte("hello"))
	f.Add(b.Bytes())
	f.Add([]byte{'o', 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte("o\x00\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		kind, body, err := readFrame(bytes.NewReader(in))
		if err != nil {
			return
		}
		if len(body) > maxFrame || byte(kind) != in[0] || int(binary.BigEndian.Uint32(in[1:])) != len(body) {
			t.Errorf("frame %c of %d bytes from %q", kind, len(body), in)
		}
		var again bytes.Buffer
		if err := (&framer{w: &again}).write(kind, body); err != nil || !bytes.HasPrefix(in, again.Bytes()) {
			t.Errorf("%q is written as %q, %v", in, again.Bytes(), err)
		}
	})
}

// The server's answers where nothing runs, or nothing could.
func TestNothingToShow(t *testing.T) {
	dir, err := local.Acquire(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Release()
	where := dir.Store()
	check := func(when string) {
		t.Helper()
		if _, err := Find(t.Context(), where, "t"); !errors.Is(err, ErrNotRunning) {
			t.Errorf("%s: Find %v, want %v", when, err, ErrNotRunning)
		}
		if _, err := Log(t.Context(), where, "t", "agent", true); !errors.Is(err, ErrNotRunning) {
			t.Errorf("%s: Log %v, want %v", when, err, ErrNotRunning)
		}
		if _, err := Exec(t.Context(), where, "t", Spec{Argv: []string{"x"}}, nil, io.Discard, io.Discard); !errors.Is(err, ErrNotRunning) {
			t.Errorf("%s: Exec %v, want %v", when, err, ErrNotRunning)
		}
	}
	check("without an owner")
	if s, err := Snapshot(t.Context(), where); s != nil || err != nil {
		t.Errorf("a snapshot of nobody: %+v, %v", s, err)
	}
	if s, err := Snapshot(t.Context(), "s3://bucket"); s != nil || err != nil {
		t.Errorf("a snapshot of what is no directory: %+v, %v", s, err)
	}

	running := &worker.Attempt{TrialID: "ready", TaskID: "a", Run: "r", Number: 2}
	s := &Server{Find: func(id string) *worker.Attempt {
		if id == running.TrialID {
			return running
		}
		return nil
	}}
	stop, err := dir.Serve(func() progress.Snapshot { return progress.Snapshot{Slots: 7} }, s.Routes()...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Wait()
	defer stop()
	check("of another trial")
	if a, err := Find(t.Context(), where, "ready"); err != nil || a.Attempt != 2 || a.TaskID != "a" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := Log(t.Context(), where, "ready", "nothing", false); err == nil || !strings.Contains(err.Error(), "there are agent, grader") {
		t.Errorf("a log that there isn't: %v", err)
	}
	if _, err := Exec(t.Context(), where, "ready", Spec{}, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "want {argv: […]}") {
		t.Errorf("no command: %v", err)
	}
	_, err = Exec(t.Context(), where, "ready", Spec{Argv: []string{"x"}}, nil, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), worker.ErrNoSandbox.Error()) {
		t.Errorf("before there is a sandbox: %v", err)
	}
	if s, err := Snapshot(t.Context(), where); err != nil || s.Slots != 7 {
		t.Errorf("snapshot %+v, %v", s, err)
	}
}
