// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"fmt"
	"net"

	"github.com/tidemill/tidemill/runtime"
)

// Ingress listens on the loopback, which the sandbox shares with the worker. Other
// programs of the machine can connect as well: what listens has to ask for a secret.
func (s *Sandbox) Ingress(ctx context.Context, name string) (runtime.Listener, error) {
	if err := s.enter(); err != nil {
		return runtime.Listener{}, err
	}
	defer s.leave()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return runtime.Listener{}, fmt.Errorf("ingress %s of sandbox %s: %w", name, s.estate.Name, err)
	}
	stop := context.AfterFunc(s.life, func() { l.Close() })
	return runtime.Listener{Listener: ingress{l, stop}, URL: "http://" + l.Addr().String()}, nil
}

type ingress struct {
	net.Listener
	stop func() bool
}

func (i ingress) Close() error {
	i.stop()
	return i.Listener.Close()
}
