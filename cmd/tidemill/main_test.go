// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
	"github.com/tidemill/tidemill/runtime/subprocess"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

// TestMain makes the test binary play the programs that scripts and tests start: they
// are processes of their own, as for a person.
func TestMain(m *testing.M) {
	subprocess.Main()
	testscript.Main(checked{m}, map[string]func(){
		"tidemill": main,
		"natsd":    natsd,
	})
}

// checked looks for goroutines that tests left.
type checked struct{ *testing.M }

func (c checked) Run() int {
	code := c.M.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// natsd is a NATS server: natsd DIR URLFILE has JetStream, and natsd DIR URLFILE CONFIG
// what its own configuration file says. natsd DIR URLFILE nats://HOST:PORT is the first one,
// where an earlier one was; natsd DIR URLFILE old and behind are [impostors]. It writes where it listens and ends with the first signal.
func natsd() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	url, shutdown, err := startNATS()
	if err == nil {
		err = os.WriteFile(os.Args[2]+".new", []byte(url), 0o600)
	}
	if err == nil {
		err = os.Rename(os.Args[2]+".new", os.Args[2]) // whoever sees the file sees all of it
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
	<-signals
	shutdown()
}

func startNATS() (url string, shutdown func(), err error) {
	listen, again := "", false
	if len(os.Args) > 3 {
		listen, again = strings.CutPrefix(os.Args[3], "nats://")
	}
	if len(os.Args) < 4 || again {
		srv, err := embedded.Start(context.Background(), embedded.Config{Dir: os.Args[1], Listen: cmp.Or(listen, "127.0.0.1:0")})
		if err != nil {
			return "", nil, err
		}
		return srv.ClientURL(), srv.Shutdown, nil
	}
	if play, ok := impostors[os.Args[3]]; ok {
		return startImpostor(play)
	}
	opts, err := server.ProcessConfigFile(os.Args[3])
	if err != nil {
		return "", nil, err
	}
	opts.NoSigs, opts.NoLog, opts.StoreDir, opts.Host, opts.Port = true, true, os.Args[1], "127.0.0.1", -1
	srv, err := server.NewServer(opts)
	if err != nil {
		return "", nil, err
	}
	go srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		return "", nil, errors.New("not up after a minute")
	}
	// Who connects says who they are.
	return "nats://" + srv.Addr().String(), func() { srv.Shutdown(); srv.WaitForShutdown() }, nil
}
