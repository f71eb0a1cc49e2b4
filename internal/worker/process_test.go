// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle/dirstore"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

// The test binary plays the processes that tests start, and kill.
const (
	playVar   = "WORKER_TEST_PLAYS" // natsd or worker
	dirVar    = "WORKER_TEST_DIR"
	listenVar = "WORKER_TEST_LISTEN"
	storeVar  = "WORKER_TEST_STORE"
)

// playProcess does not return in a process that plays something. Each says "ready" and what
// else there is to know on a line of its stdout, and goes on until it is killed or, asked
// by the end of its stdin, comes to its end.
func playProcess() {
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	switch os.Getenv(playVar) {
	case "":
		cancel()
		return
	case "natsd":
		err = playServer(ctx)
	case "worker":
		go func() {
			defer cancel()
			_, _ = bufio.NewReader(os.Stdin).ReadString(0)
		}()
		err = playWorker(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func playServer(ctx context.Context) error {
	srv, err := embedded.Start(ctx, embedded.Config{Dir: os.Getenv(dirVar), Listen: os.Getenv(listenVar)})
	if err != nil {
		return err
	}
	fmt.Println("ready", srv.ClientURL())
	_, _ = bufio.NewReader(os.Stdin).ReadString(0)
	srv.Shutdown()
	return nil
}

// shortLeases is a queue on which who died is missed soon.
func shortLeases() natsqueue.Config {
	return natsqueue.Config{
		Store: storeUUID, LeaseTTL: 2 * time.Second, LeaseSettle: -1, ProbeEvery: 100 * time.Millisecond,
	}
}

func playWorker(ctx context.Context) error {
	store, err := dirstore.Open(os.Getenv(storeVar), dirstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	q, err := natsqueue.Dial(ctx, os.Getenv(listenVar), shortLeases())
	if err != nil {
		return err
	}
	defer q.Close()
	dir := os.Getenv(dirVar)
	rt, err := subprocess.New(subprocess.Config{Root: filepath.Join(dir, "work"), Store: storeUUID, Isolation: subprocess.None})
	if err != nil {
		return err
	}
	defer rt.Close()
	w, err := worker.New(worker.Config{
		Store: store, StoreUUID: storeUUID, Queue: q, Runtimes: map[string]runtime.Runtime{rt.Type(): rt},
		Dir: filepath.Join(dir, "worker"), Slots: 2, PoisonAfter: 3, Log: zerolog.New(os.Stderr).Level(zerolog.WarnLevel),
	})
	if err != nil {
		return err
	}
	fmt.Println("ready", os.Getpid())
	return w.Run(ctx)
}

// player is such a process.
type player struct {
	cmd   *exec.Cmd
	said  string // behind "ready"
	ended chan struct{}
	stop  func()
}

// play starts a process and waits until it is ready.
func play(t *testing.T, what string, env ...string) *player {
	t.Helper()
	p := &player{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), playVar+"="+what), env...)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stop = func() { _ = in.Close() }
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // who cares looks at the state
	}()
	t.Cleanup(p.kill)
	said, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ok {
		t.Fatalf("%s said %q: %v", what, line, err)
	}
	p.said = said
	return p
}

// kill ends it as a crash would, if it still runs.
func (p *player) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}
