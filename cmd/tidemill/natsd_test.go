// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// impostors are servers as no real one can be had in a test: without JetStream, whose API
// is left to whoever answers there. One is of an old level, and the clock of one is an
// hour behind.
var impostors = map[string]func(*nats.Conn) error{
	"old": func(nc *nats.Conn) error { return respond(nc, "$JS.API.INFO", accountInfo(1)) },
	"behind": func(nc *nats.Conn) error {
		return errors.Join(
			respond(nc, "$JS.API.INFO", accountInfo(4)),
			respond(nc, "$JS.API.STREAM.INFO.*", func() string {
				return fmt.Sprintf(`{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{},"state":{},"ts":%q}`,
					time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano))
			}),
		)
	},
}

func accountInfo(level int) func() string {
	return func() string {
		return fmt.Sprintf(`{"type":"io.nats.jetstream.api.v1.account_info_response","api":{"level":%d,"total":0,"errors":0}}`, level)
	}
}

func respond(nc *nats.Conn, subject string, answer func() string) error {
	_, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer())) })
	return err
}

func startImpostor(play func(*nats.Conn) error) (url string, shutdown func(), err error) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	if err != nil {
		return "", nil, err
	}
	go srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		return "", nil, errors.New("not up after a minute")
	}
	nc, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		return "", nil, err
	}
	if err := errors.Join(play(nc), nc.Flush()); err != nil {
		return "", nil, err
	}
	return srv.ClientURL(), func() { nc.Close(); srv.Shutdown(); srv.WaitForShutdown() }, nil
}
