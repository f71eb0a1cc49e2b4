// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/tidemill/tidemill/runtime"
)

// Ingress listens on the loopback that the sandbox's programs have: their own, or the one
// that they share with the worker. There other programs of the machine can connect as
// well: what listens has to ask for a secret. Where phases differ in that, it listens on
// both.
func (s *Sandbox) Ingress(ctx context.Context, name string) (runtime.Listener, error) {
	if err := s.enter(); err != nil {
		return runtime.Listener{}, err
	}
	defer s.leave()
	l, err := s.listen(ctx)
	if err != nil {
		return runtime.Listener{}, fmt.Errorf("ingress %s of sandbox %s: %w", name, s.estate.Name, err)
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	return runtime.Listener{Listener: ingress{l, s}, URL: "http://" + l.Addr().String()}, nil
}

// ingress is a listener that its sandbox closes, unless it was closed before.
type ingress struct {
	net.Listener
	sandbox *Sandbox
}

func (i ingress) Close() error {
	s := i.sandbox
	s.mu.Lock()
	s.listeners = slices.DeleteFunc(s.listeners, func(l net.Listener) bool { return l == i.Listener })
	s.mu.Unlock()
	return i.Listener.Close()
}

func (s *Sandbox) closeListeners() {
	s.mu.Lock()
	listeners, forwards := s.listeners, s.forwards
	s.listeners, s.forwards = nil, nil
	s.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	for _, f := range forwards {
		f.Close()
	}
}
