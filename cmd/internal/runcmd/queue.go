// SPDX-License-Identifier: Apache-2.0

package runcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/queue/natsqueue"
	"github.com/tidemill/tidemill/queue/natsqueue/embedded"
)

// startQueue starts the embedded queue, empty: what was in it is rebuilt from the store
// by submitting again. So nothing of it has to outlive this process, least of all a loss of
// power, and nothing is brought to disk (ADR 27).
func (s *session) startQueue(ctx context.Context) error {
	srv, err := embedded.Start(ctx, embedded.Config{
		Dir: s.dir.Queue(), Listen: s.listen, Log: s.serverLog, RelaxedSync: true,
	})
	if err != nil {
		return fmt.Errorf("embedded queue: %w", err)
	}
	s.onClose(func() error { srv.Shutdown(); return nil })
	s.listens = srv.ClientURL()
	nc, err := srv.Connect()
	if err != nil {
		return fmt.Errorf("embedded queue: %w", err)
	}
	s.onClose(func() error { nc.Close(); return nil })
	// A server that has given up answers nothing, and who has asked it would wait for the
	// whole CallTimeout. Without a connection everybody is told at once.
	s.hangUp.Store(&hangUp{nc.Close})
	if s.sick.Load() != nil { // it has given up already
		nc.Close()
	}
	// The server lives and dies with this process: nobody else's leases have to settle.
	q, err := natsqueue.Open(ctx, nc, natsqueue.Config{
		Store: s.identity.StoreUUID, LeaseSettle: -1,
		// Nor can it be away: when it is slow, the disk is busy with our own work.
		CallTimeout: 30 * time.Second,
	})
	if err != nil {
		return fmt.Errorf("embedded queue: %w", err)
	}
	s.queue = q
	s.onClose(q.Close)
	return nil
}

// fatalNews are the words of the server after which it takes nothing more until it is
// started again, whatever becomes of the disk.
var fatalNews = []string{"Critical write error", "out of resources", "out of File resources", "will be DISABLED", "No space left", "no space left"}

func (s *session) serverLog(level embedded.Level, text string) {
	l, err := zerolog.ParseLevel(string(level))
	if err != nil || l == zerolog.InfoLevel {
		l = zerolog.DebugLevel // the server's news are details here
	}
	s.log.WithLevel(l).Str("component", "nats").Msg(text)
	if level == embedded.Error && slices.ContainsFunc(fatalNews, func(word string) bool { return strings.Contains(text, word) }) {
		if first := s.sick.CompareAndSwap(nil, &text); !first {
			return
		}
		if h := s.hangUp.Load(); h != nil {
			go h.do() // it waits for callbacks, and the server waits for us
		}
	}
}

// hangUp closes the connection to the embedded queue.
type hangUp struct{ do func() }
