// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidemill/tidemill/internal/testenv"
)

// TestScript runs the command line as the scripts in testdata/script say. They are
// written to be read: each is a chapter of a manual. Beside testscript's own commands
// they have:
//
//	exits CODE CMD ARG...    run a program that ends with this exit code
//	start NAME CMD ARG...    start a program and go on
//	await NAME PATTERN       wait until its output has a match
//	interrupt NAME           send it what Ctrl-C sends
//	kill9 NAME               kill it as a crash would
//	finish NAME CODE         wait for its end; stdout and stderr are its output
//	await-file FILE          wait until a file is there
//	setenv-from VAR FILE     set a variable to what a file holds
//	s3 [readonly|skewed]     start an S3 service and set TIDEMILL_STORE to a store in it
//	probe NAME PATH CODE PATTERN    ask a worker that was started with --listen and --log-level info
//	busybox-image VAR        set a variable to an image on the engine
//	json FILE PATH VALUE     compare a value in a JSON file; PATH is a.b.0
//	empty-handed DIR         a data directory holds no sandbox, queue or temporary file
//	nothing-left DIR         the same, and no process of the script runs
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", filepath.Join(testenv.Root(t), "examples"))
			env.Values[processesKey{}] = newProcesses()
			env.Values[tbKey{}] = env.T()
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" { // root may write everywhere
				return os.Geteuid() == 0, nil
			}
			return false, errors.New("unknown condition")
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":         exits,
			"start":         start,
			"await":         await,
			"interrupt":     interrupt,
			"kill9":         kill9,
			"finish":        finish,
			"await-file":    awaitFile,
			"setenv-from":   setenvFrom,
			"probe":         probe,
			"s3":            startS3,
			"busybox-image": busyboxImage,
			"json":          jsonValue,
			"empty-handed":  emptyHanded,
			"nothing-left":  nothingLeft,
		},
	})
}

type tbKey struct{}

// arguments refuses a script that calls a command wrongly.
func arguments(ts *testscript.TestScript, neg bool, args []string, least int, usage string) {
	if neg || len(args) < least {
		ts.Fatalf("usage: %s", usage)
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "exits CODE CMD ARG...")
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s ended with exit code %d, want %s", args[1], code, args[0])
	}
}

func nothingLeft(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "nothing-left DIR")
	tb, ok := ts.Value(tbKey{}).(testing.TB)
	if !ok {
		ts.Fatalf("the script's test is no testing.TB")
	}
	// Whatever the script started has its working directory in the environment.
	testenv.NoLeaks(tb, ts.Getenv("WORK"))
	emptyHanded(ts, neg, args)
}

func emptyHanded(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "empty-handed DIR")
	for _, place := range []string{"work", "worker/spool", "queue", "tmp", "socket"} {
		path := filepath.Join(ts.MkAbs(args[0]), ".tidemill", place)
		if entries, _ := os.ReadDir(path); len(entries) > 0 {
			ts.Fatalf("left behind in %s: %v", path, entries)
		}
		if info, err := os.Lstat(path); err == nil && !info.IsDir() {
			ts.Fatalf("left behind: %s", path)
		}
	}
}
