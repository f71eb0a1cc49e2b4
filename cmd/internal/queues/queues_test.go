// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/queue"
)

const someStore = "6f0c6c0e-54a6-4d64-a1ab-6f2c5c0f7e11"

func TestCheck(t *testing.T) {
	for _, where := range []string{"nats://127.0.0.1:4222", "nats://broker", "tls://broker:4222", "nats://user:pw@broker:4222", "nats://a:4222,nats://b:4222"} {
		if err := Check(where); err != nil {
			t.Errorf("Check(%q): %v", where, err)
		}
	}
	for where, want := range map[string]string{
		"":                          "no queue given",
		"127.0.0.1:4222":            "want nats://HOST:PORT",
		"broker":                    "want nats://HOST:PORT",
		"nats://":                   "want nats://HOST:PORT",
		"nats://a:4222,":            "want nats://HOST:PORT",
		"redis://user:secret@host":  "want nats://HOST:PORT",
		"nats://user:secret@host:%": "want nats://HOST:PORT",
	} {
		err := Check(where)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "user:secret") {
			t.Errorf("Check(%q): %v; want %q and no password", where, err, want)
		}
		if ce, ok := errors.AsType[*app.CodeError](err); !ok || ce.Code != app.ExitUsage {
			t.Errorf("Check(%q): %v is not marked as bad input", where, err)
		}
	}
}

func TestDialNobody(t *testing.T) {
	// A port that was free a moment ago.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	f := Flags{URL: "nats://user:secret@" + l.Addr().String()}
	_, err = f.Dial(t.Context(), someStore)
	if !errors.Is(err, queue.ErrUnreachable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v; want %v without the password", err, queue.ErrUnreachable)
	}
}
