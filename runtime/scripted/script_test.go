// SPDX-License-Identifier: Apache-2.0

package scripted_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/scripted"
)

const name = "0123456789abcdef0123456789abcdef"

func spec(env ...string) runtime.Spec {
	s := runtime.Spec{
		Name: name, Labels: runtime.Labels{Attempt: 1}, Env: map[string]string{"ROW": "/input/row.json"},
		Network: map[runtime.Phase]runtime.Network{
			runtime.Setup: {Policy: runtime.FullInternet}, runtime.Agent: {Policy: runtime.NoInternet},
		},
	}
	for i := 0; i < len(env); i += 2 {
		s.Env[env[i]] = env[i+1]
	}
	return s
}

func prepare(t *testing.T, rt *scripted.Runtime) runtime.Environment {
	t.Helper()
	env, err := rt.Prepare(t.Context(), runtime.RunSpec{Run: "r"})
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return env
}

// open opens a sandbox with a row in its input, and with the places of the grader.
func open(t *testing.T, rt *scripted.Runtime, s runtime.Spec, row string) runtime.Sandbox {
	t.Helper()
	sb, err := prepare(t, rt).Open(t.Context(), s)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := sb.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	copyIn(t, sb, runtime.Input, "row.json", row)
	copyIn(t, sb, runtime.Verdict, "", "")
	return sb
}

func copyIn(t *testing.T, sb runtime.Sandbox, p runtime.Place, file, content string) {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if file != "" {
		if err := w.WriteHeader(&tar.Header{Name: file, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sb.CopyIn(t.Context(), p, &buf, runtime.CopyOptions{}); err != nil {
		t.Fatalf("CopyIn to %s: %v", p, err)
	}
}

type ending struct {
	exit           runtime.Exit
	stdout, stderr string
	err            error
}

func exec(t *testing.T, sb runtime.Sandbox, argv ...string) ending {
	t.Helper()
	var stdout, stderr bytes.Buffer
	exit, err := sb.Exec(t.Context(), runtime.Command{Argv: argv, Stdout: &stdout, Stderr: &stderr})
	return ending{exit, stdout.String(), stderr.String(), err}
}

func TestInstructions(t *testing.T) {
	const row = `{"agent": ["print from the row", "exit 4"], "deep": {"text": "print one\nprint two"}, "array": "[\"print x\"]", "n": 5}`
	for what, test := range map[string]struct {
		argv   []string
		exit   runtime.Exit
		stdout string
		stderr string
	}{
		"speaks on both streams":       {argv: []string{"print hello", "warn beware", `emit "\x00\xff"`}, stdout: "hello\n\x00\xff", stderr: "beware\n"},
		"ends where it is told":        {argv: []string{"exit 3", "print never"}, exit: runtime.Exit{Code: 3}},
		"dies of a signal":             {argv: []string{"kill 15"}, exit: runtime.Exit{Code: 143, Signal: "SIGTERM"}},
		"takes instructions of a row":  {argv: []string{"run input/row.json#agent", "print never"}, exit: runtime.Exit{Code: 4}, stdout: "from the row\n"},
		"finds the row by a variable":  {argv: []string{"run $ROW#deep.text", "run ${ROW}#array"}, stdout: "one\ntwo\nx\n"},
		"grades what is right":         {argv: []string{"write answer 42", "judge answer 42", "read verifier/reward.txt"}, stdout: "1\n"},
		"grades what is wrong":         {argv: []string{"write answer 41", "judge answer 42", "read verifier/reward.txt"}, stdout: "0\n"},
		"grades what is missing":       {argv: []string{"judge answer 42", "read verifier/reward.txt"}, stdout: "0\n"},
		"writes no number":             {argv: []string{"nan", "read /logs/verifier/reward.txt"}, stdout: "NaN\n"},
		"misses a file":                {argv: []string{"require-file tests/x"}, exit: runtime.Exit{Code: 1}, stderr: "/tests/x: no such file or directory\n"},
		"is glad that there's no file": {argv: []string{"require-no-file tests/x"}},
		"finds what shouldn't be":      {argv: []string{"write x y", "require-no-file x"}, exit: runtime.Exit{Code: 1}, stderr: "/workdir/x: is there and should not be\n"},
		"copies and appends":           {argv: []string{"write a 1", "append a 2", "copy a b", "remove a", "read b"}, stdout: "12"},
		"tells a place from a path":    {argv: []string{"mkdir ./tests", "write ./tests/x y", "read /workdir/tests/x", "require-no-file tests/x"}, stdout: "y"},
		"runs out of memory": {
			argv: []string{"oom"}, exit: runtime.Exit{Code: 137, Signal: "SIGKILL", Exhausted: runtime.OutOfMemory}, stderr: "out of memory\n",
		},
		"runs out of processes": {
			argv: []string{"fork-bomb"}, exit: runtime.Exit{Code: 1, Exhausted: runtime.OutOfPids},
			stderr: "fork: resource temporarily unavailable\n",
		},
		"fills the disk": {
			argv: []string{"fill-disk"}, exit: runtime.Exit{Code: 1, Exhausted: runtime.OutOfDisk},
			stderr: "no space left on device\n",
		},
		"knows its phase": {argv: []string{"phase", "whoami"}, stdout: "setup full_internet\nuser\n"},
		"has no network": {
			argv: []string{"fetch http://example.com/x"}, exit: runtime.Exit{Code: 7},
			stderr: "example.com: no such host under the policy full_internet\n",
		},
		"does something once":       {argv: []string{"first 1 print once", "first 1 print once", "print always"}, stdout: "once\nalways\n"},
		"minds the attempt":         {argv: []string{"on-attempt 1 print first", "on-attempt 2 exit 5"}, stdout: "first\n"},
		"prints its arguments":      {argv: []string{"args", "exit 3", ""}, stdout: "exit 3\x00\x00"},
		"leaves a process":          {argv: []string{"leave-process pid", "alive pid"}, stdout: "alive\n"},
		"has processes that finish": {argv: []string{`background ["signal off", "exit 1"]`}},
	} {
		t.Run(what, func(t *testing.T) {
			sb := open(t, scripted.New(scripted.Config{}), spec(), row)
			got := exec(t, sb, test.argv...)
			if got.err != nil {
				t.Fatal(got.err)
			}
			want := ending{test.exit, test.stdout, test.stderr, nil}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(ending{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMistakesAreStartErrors(t *testing.T) {
	sb := open(t, scripted.New(scripted.Config{}), spec(), `{"n": 5, "bad": ["dance"], "self": "run input/row.json#self"}`)
	for _, test := range []struct{ instruction, says string }{
		{"dance", `unknown instruction "dance", want one of alive, append,`},
		{"", `unknown instruction ""`},
		{"exit", `instruction "exit": "": want a whole number`},
		{"exit -1", "want a whole number"},
		{"kill 99", "there is no signal 99"},
		{"sleep soon", "want a duration like 2s"},
		{"block", "has 0 arguments, want 1"},
		{"copy a", "has 1 arguments, want 2"},
		{"hold on", "has 1 arguments, want 0"},
		{`print "open`, "starts with a quote and is no Go string"},
		{"oom everything", "want nothing, or box"},
		{"first x exit 1", "want a whole number"},
		{"first 1 dance", `unknown instruction "dance"`},
		{"background dance", `unknown instruction "dance"`},
		{`background ["print"`, "want a JSON array of texts"},
		{"run input/missing.json#x", "no such file"},
		{"run input/row.json#x", "has no field x"},
		{"run input/row.json#n", "want a text or a list of texts"},
		{"run input/row.json#bad", `unknown instruction "dance"`},
		{"run input/row.json#self", "nested more than 8 deep"},
		{"no-start", "it was not to start"},
	} {
		got := exec(t, sb, "write started x", test.instruction)
		var start *runtime.StartError
		if !errors.As(got.err, &start) || !strings.Contains(got.err.Error(), test.says) {
			t.Errorf("%q: error %v, want a StartError that says %q", test.instruction, got.err, test.says)
		}
	}
	if got := exec(t, sb, "require-no-file started"); got.exit.Code != 0 {
		t.Errorf("a program that can't be started was started in part: %s", got.stderr)
	}
}

func TestLosses(t *testing.T) {
	for _, instruction := range []string{"lose-sandbox", "oom box", `background ["lose-sandbox"]`} {
		provider := &scripted.Provider{}
		rt := scripted.New(scripted.Config{Provider: provider})
		sb := open(t, rt, spec(), "{}")
		got := exec(t, sb, instruction, "hold")
		if instruction == "oom box" {
			if got.err != nil || got.exit.Exhausted != runtime.OutOfMemory {
				t.Errorf("%s: exit %+v, error %v", instruction, got.exit, got.err)
			}
		} else if !errors.Is(got.err, runtime.ErrLost) {
			t.Errorf("%s: error %v, want ErrLost", instruction, got.err)
		}
		if err := sb.Alive(t.Context()); !errors.Is(err, runtime.ErrLost) {
			t.Errorf("%s: Alive is %v, want ErrLost", instruction, err)
		}
		if len(provider.Left()) != 1 {
			t.Errorf("%s: a dead sandbox stays until it is closed; there is %q", instruction, provider.Left())
		}
	}
	sb := open(t, scripted.New(scripted.Config{}), spec(), "{}")
	if got := exec(t, sb, "error the engine is on fire"); got.err == nil || !strings.Contains(got.err.Error(), "the engine is on fire") {
		t.Errorf("error: %v", got.err)
	}
}

func TestOpenScripts(t *testing.T) {
	for what, test := range map[string]struct {
		script    string
		stage     string
		says      string
		permanent bool
		is        error
	}{
		"fails":              {script: "fail await_ready db never came up", stage: runtime.StageReady, says: "db never came up"},
		"fails for good":     {script: "fail-permanent image no such image", stage: runtime.StageImage, says: "no such image", permanent: true},
		"has no room":        {script: "capacity", stage: runtime.StageProvision, is: runtime.ErrCapacity},
		"has a wrong script": {script: "fail", stage: runtime.StageProvision, says: "want a stage and a text", permanent: true},
		"isn't ready":        {script: "block for-ever", stage: runtime.StageReady, says: "not ready in time"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				provider := &scripted.Provider{}
				env := prepare(t, scripted.New(scripted.Config{Provider: provider}))
				s := spec(scripted.OpenVar, "log db starting\nlog db still starting\nservice-exit db 3\n"+test.script)
				s.ReadyTimeout = time.Hour
				_, err := env.Open(t.Context(), s)
				var fault *runtime.ProvisionError
				if !errors.As(err, &fault) {
					t.Fatalf("error %v, want a ProvisionError", err)
				}
				if fault.Stage != test.stage || fault.Permanent != test.permanent || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%+v, want %+v", fault, test)
				}
				if test.is != nil && !errors.Is(err, test.is) {
					t.Errorf("error %v, want %v", err, test.is)
				}
				if !fault.Permanent {
					services := fault.Evidence.Services
					if len(services) != 2 || string(services[1].Log) != "starting\nstill starting\n" || *services[1].ExitCode != 3 {
						t.Errorf("evidence %+v", services)
					}
				}
				if left := provider.Left(); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		})
	}
}

func TestFailTimesCountsByName(t *testing.T) {
	env := prepare(t, scripted.New(scripted.Config{}))
	for i, want := range []bool{false, false, true, true} {
		sb, err := env.Open(t.Context(), spec(scripted.OpenVar, "fail-times 2 provision not yet"))
		if (err == nil) != want {
			t.Errorf("Open %d: %v", i+1, err)
		}
		if err == nil {
			if err := sb.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	}
}

func TestCloseScripts(t *testing.T) {
	provider := &scripted.Provider{}
	rt := scripted.New(scripted.Config{Provider: provider})
	sb, err := prepare(t, rt).Open(t.Context(), spec(scripted.CloseVar, "first 1 fail the volume is busy"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "the volume is busy") {
		t.Errorf("Close: %v", err)
	}
	if len(provider.Left()) != 1 || rt.Close() == nil {
		t.Errorf("what could not be closed is gone: %q", provider.Left())
	}
	if err := sb.Close(t.Context()); err != nil || len(provider.Left()) != 0 || rt.Close() != nil {
		t.Errorf("second Close: %v, left %q", err, provider.Left())
	}

	synctest.Test(t, func(t *testing.T) {
		sb, err := prepare(t, scripted.New(scripted.Config{})).Open(t.Context(), spec(scripted.CloseVar, "block for-ever"))
		if err != nil {
			t.Fatal(err)
		}
		if err := sb.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "budget") {
			t.Errorf("a Close that hangs: %v, want its budget to end it", err)
		}
	})
}

func TestPrepareScripts(t *testing.T) {
	rt := scripted.New(scripted.Config{})
	for options, says := range map[string]string{
		"fail the registry is down": "the registry is down", "capacity": runtime.ErrCapacity.Error(), "dance": "unknown instruction",
	} {
		_, err := rt.Prepare(t.Context(), runtime.RunSpec{Options: map[string]any{"prepare": options}})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", options, err)
		}
	}
	if _, err := rt.Prepare(t.Context(), runtime.RunSpec{Options: map[string]any{"prepair": ""}}); err == nil {
		t.Error("an unknown option was accepted")
	}
}

func TestControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := scripted.New(scripted.Config{})
		sb := open(t, rt, spec(), "{}")
		done := make(chan ending, 1)
		go func() { done <- exec(t, sb, "signal started", "block middle", "print through") }()
		for _, point := range []string{"started", "middle"} {
			if err := rt.Control().Wait(t.Context(), "", point); err != nil {
				t.Fatal(err)
			}
		}
		if n := rt.Control().Reached(name, "middle"); n != 1 {
			t.Errorf("middle was reached %d times, want 1", n)
		}
		synctest.Wait()
		select {
		case got := <-done:
			t.Fatalf("it didn't block: %+v", got)
		default:
		}
		rt.Control().Release(name, "middle")
		if got := <-done; got.stdout != "through\n" {
			t.Errorf("%+v", got)
		}
		if got := exec(t, sb, "block middle"); got.err != nil { // stays released
			t.Errorf("%+v", got)
		}
		rt.Control().Rearm(name, "middle")
		exit, err := sb.Exec(t.Context(), runtime.Command{Argv: []string{"block middle"}, Timeout: time.Hour})
		if err != nil || !exit.TimedOut {
			t.Errorf("after Rearm: exit %+v, error %v, want it to block", exit, err)
		}
	})
}

func TestSleepGoesByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sb := open(t, scripted.New(scripted.Config{}), spec(), "{}")
		began := time.Now()
		if got := exec(t, sb, "sleep 90m", "print rested"); got.stdout != "rested\n" || time.Since(began) != 90*time.Minute {
			t.Errorf("%+v after %v", got, time.Since(began))
		}
	})
}

func TestFullDisk(t *testing.T) {
	s := spec()
	s.Resources.Disk = 1 << 20
	sb := open(t, scripted.New(scripted.Config{}), s, "{}")
	if got := exec(t, sb, "big-file a 1048000", "write b "+strings.Repeat("x", 1000)); got.exit.Exhausted != runtime.OutOfDisk {
		t.Errorf("past the limit: %+v", got)
	}
	if got := exec(t, sb, "remove a", "write b x", "fill-disk"); got.exit.Exhausted != runtime.OutOfDisk {
		t.Errorf("fill-disk: %+v", got)
	}
	if got := exec(t, sb, "write verifier/reward.txt 1"); got.exit.Code != 1 || got.exit.Exhausted != runtime.OutOfDisk {
		t.Errorf("on a full disk: %+v", got)
	}
	out, err := sb.CopyOut(t.Context(), runtime.Workdir, ".", runtime.CopyLimits{FileBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, out); err != nil || n > 4096 {
		t.Errorf("%d bytes, error %v", n, err)
	}
	if list, total := out.Skipped(); total != 1 || list[0].Path != "filler" {
		t.Errorf("left out: %+v", list)
	}
}

func TestServices(t *testing.T) {
	s := spec(scripted.OpenVar, "log db ready")
	s.Services, s.Runner = []runtime.Service{{Name: "runner"}, {Name: "db"}}, "runner"
	rt := scripted.New(scripted.Config{})
	sb := open(t, rt, s, "{}")
	if got := exec(t, sb, "serve 8080 hello from inside", "log runner one", "log runner two"); got.err != nil {
		t.Fatal(got.err)
	}
	for _, service := range []string{"", "runner"} {
		addr, err := sb.Endpoint(t.Context(), service, 8080)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + addr)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); err != nil || string(body) != "hello from inside" {
			t.Errorf("%q, error %v", body, err)
		}
	}
	if _, err := sb.Endpoint(t.Context(), "db", 5432); err == nil {
		t.Error("an endpoint that nobody serves: no error")
	}
	e, err := sb.Evidence(t.Context(), 1)
	want := runtime.Evidence{Services: []runtime.ServiceEvidence{
		{Service: "db", Log: []byte("ready\n")}, {Service: "runner", Log: []byte("two\n"), Truncated: true},
	}}
	if diff := cmp.Diff(want, e); err != nil || diff != "" {
		t.Errorf("evidence, error %v (-want +got):\n%s", err, diff)
	}
	if _, err := sb.Exec(t.Context(), runtime.Command{Service: "cache", Argv: []string{"pwd"}}); err == nil {
		t.Error("a command in a service that there isn't: no error")
	}
}

func TestCapacity(t *testing.T) {
	rt := scripted.New(scripted.Config{Provider: &scripted.Provider{Capacity: 1}})
	sb := open(t, rt, spec(), "{}")
	other := spec()
	other.Name = "other"
	if _, err := prepare(t, rt).Open(t.Context(), other); !errors.Is(err, runtime.ErrCapacity) {
		t.Errorf("the second of 1: %v, want ErrCapacity", err)
	}
	if err := sb.Close(t.Context()); err != nil {
		t.Error(err)
	}
	open(t, rt, other, "{}")
}

func ExampleNew() {
	rt := scripted.New(scripted.Config{})
	fmt.Println(rt.Type(), rt.Properties().Policies)
	// Output: scripted [full_internet no_internet limited_internet]
}
