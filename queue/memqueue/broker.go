// SPDX-License-Identifier: Apache-2.0

package memqueue

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// Config shapes a broker.
type Config struct {
	// DedupeWindow is how long the id of a job is remembered. Defaults to 2 minutes.
	DedupeWindow time.Duration
	// LeaseTTL is how long a lease lives without Extend. Defaults to 45 s.
	LeaseTTL time.Duration
}

// WithDefaults returns a completed copy.
func (c Config) WithDefaults() Config {
	c.DedupeWindow = cmp.Or(c.DedupeWindow, 2*time.Minute)
	c.LeaseTTL = cmp.Or(c.LeaseTTL, 45*time.Second)
	return c
}

// Validate reports the first field that is wrong. Call it on a completed config.
func (c Config) Validate() error {
	switch {
	case c.DedupeWindow < 0:
		return fmt.Errorf("%w: dedupe window %v: want more than 0", queue.ErrInvalid, c.DedupeWindow)
	case c.LeaseTTL < 0:
		return fmt.Errorf("%w: lease TTL %v: want more than 0", queue.ErrInvalid, c.LeaseTTL)
	}
	return nil
}

// Broker is what all values of one queue share.
type Broker struct {
	cfg    Config
	roster roster

	mu      sync.Mutex
	runs    map[string]*run
	dead    map[string][]queue.DeadLetter // by run; outlives it
	known   map[string]time.Time          // "run/id" → when it was published
	oldest  []string                      // the known ids by age
	changed chan struct{}                 // closed and replaced when a waiting Lease should look again
	fence   queue.Fence
	order   uint64 // of publishing; redelivered jobs keep theirs
	turn    float64
}

// NewBroker returns an empty broker.
func NewBroker(cfg Config) (*Broker, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Broker{
		cfg:     cfg,
		runs:    map[string]*run{},
		dead:    map[string][]queue.DeadLetter{},
		known:   map[string]time.Time{},
		changed: make(chan struct{}),
		// A broker that replaces another one has larger fences than that had.
		fence: queue.Fence(time.Now().UnixMicro()),
	}, nil
}

// Open returns a new value, as another process would have one.
func (b *Broker) Open() *Queue {
	return &Queue{broker: b, closed: make(chan struct{})}
}

// wake lets every waiting Lease look again. Call it with the lock held.
func (b *Broker) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// run returns an open run. Call it with the lock held.
func (b *Broker) run(id string) (*run, error) {
	r, ok := b.runs[id]
	if !ok {
		return nil, fmt.Errorf("run %s: %w", id, queue.ErrUnknownRun)
	}
	return r, nil
}

// remember notes an id and reports whether it is new. It forgets what is older
// than the window. Call it with the lock held.
func (b *Broker) remember(run string, id queue.ID, now time.Time) bool {
	for len(b.oldest) > 0 && now.Sub(b.known[b.oldest[0]]) > b.cfg.DedupeWindow {
		delete(b.known, b.oldest[0])
		b.oldest = b.oldest[1:]
	}
	key := run + "/" + id.String()
	if _, ok := b.known[key]; ok {
		return false
	}
	b.known[key] = now
	b.oldest = append(b.oldest, key)
	return true
}
