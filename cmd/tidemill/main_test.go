// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

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

// natsd is a NATS server with JetStream: natsd DIR URLFILE. It writes where it listens
// and ends with the first signal.
func natsd() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	srv, err := embedded.Start(context.Background(), embedded.Config{Dir: os.Args[1], Listen: "127.0.0.1:0"})
	if err == nil {
		err = os.WriteFile(os.Args[2]+".new", []byte(srv.ClientURL()), 0o600)
	}
	if err == nil {
		err = os.Rename(os.Args[2]+".new", os.Args[2]) // whoever sees the file sees all of it
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
	<-signals
	srv.Shutdown()
}
