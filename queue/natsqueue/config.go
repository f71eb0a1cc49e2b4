// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tidemill/tidemill/queue"
)

// Config shapes a [Queue]. All processes on one server use the same Store and
// LeaseTTL.
type Config struct {
	// AckRepeats is how often an ack is sent before the message is deleted
	// instead. Defaults to 3.
	AckRepeats int
	// BatchSize is how many jobs go into one atomic batch; the server takes 1000
	// at most. Defaults to 1000.
	BatchSize int
	// CallTimeout bounds each single request to the server. Defaults to 2 s.
	CallTimeout time.Duration
	// DedupeWindow is how long the id of a job is remembered. Defaults to what the
	// stream has, and 2 minutes where it is created.
	DedupeWindow time.Duration
	// LeaseSettle is how long nobody takes over an expired lease: after this
	// value's own (re)connect, and after the birth of the lease bucket, so that
	// living owners come first. Negative means none, which is right in the process
	// that runs the server. Defaults to 10 s.
	LeaseSettle time.Duration
	// LeaseTTL is how long a lease lives without Extend. Defaults to 45 s.
	LeaseTTL time.Duration
	// MaxClockSkew is how far the server's clock and ours may be apart: new streams get
	// their first number from ours, and times in records are ours. Defaults to 5 s.
	MaxClockSkew time.Duration
	// ProbeEvery is how often an idle slot looks at one run unasked, which finds
	// what nobody tells: leases that ran out and wakes that were lost. With many
	// runs it looks more often. Defaults to 5 s.
	ProbeEvery time.Duration
	// ProbeTimeout is how long a run that has a cap may take to answer a pull
	// before it counts as full: at its cap the server answers nothing. Defaults to
	// 30 ms.
	ProbeTimeout time.Duration
	// Replicas of everything that is stored: 1, 3 or 5. What is there with another
	// number is changed. Defaults to what is there, and 1 where it is created.
	Replicas int
	// OpenWait is how long [Dial] tries again while no server answers, or JetStream has no
	// leader, as in an election. Defaults to not at all.
	OpenWait time.Duration
	// OnWait is told what it waits for, at once and then ever more rarely; may be nil.
	OnWait func(why error)
	// Store is the uuid of the store whose trials are queued here. A server that
	// serves another one refuses. Required.
	Store string

	wall func() time.Time // the time of day; tests set it
}

// WithDefaults returns a completed copy.
func (c Config) WithDefaults() Config {
	c.AckRepeats = cmp.Or(c.AckRepeats, 3)
	c.BatchSize = cmp.Or(c.BatchSize, 1000)
	c.CallTimeout = cmp.Or(c.CallTimeout, 2*time.Second)
	c.LeaseSettle = cmp.Or(c.LeaseSettle, 10*time.Second)
	c.LeaseTTL = cmp.Or(c.LeaseTTL, 45*time.Second)
	c.MaxClockSkew = cmp.Or(c.MaxClockSkew, 5*time.Second)
	c.ProbeEvery = cmp.Or(c.ProbeEvery, 5*time.Second)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, 30*time.Millisecond)
	if c.wall == nil {
		c.wall = time.Now
	}
	return c
}

// Validate reports the first field that is wrong. Call it on a completed config.
func (c Config) Validate() error {
	bad := func(field string, got any, want string) error {
		return fmt.Errorf("%w: natsqueue config: %s %v: want %s", queue.ErrInvalid, field, got, want)
	}
	switch {
	case c.Store == "":
		return bad("Store", `""`, "the uuid of the store")
	case c.AckRepeats < 1:
		return bad("AckRepeats", c.AckRepeats, "1 or more")
	case c.BatchSize < 1 || c.BatchSize > 1000:
		return bad("BatchSize", c.BatchSize, "1 to 1000")
	case c.CallTimeout <= 0:
		return bad("CallTimeout", c.CallTimeout, "more than 0")
	case c.DedupeWindow != 0 && c.DedupeWindow < 100*time.Millisecond:
		return bad("DedupeWindow", c.DedupeWindow, "100ms or more")
	case c.LeaseTTL < 100*time.Millisecond:
		return bad("LeaseTTL", c.LeaseTTL, "100ms or more")
	case c.MaxClockSkew < 0:
		return bad("MaxClockSkew", c.MaxClockSkew, "more than 0")
	case c.ProbeEvery <= 0:
		return bad("ProbeEvery", c.ProbeEvery, "more than 0")
	case c.ProbeTimeout <= 0 || c.ProbeTimeout > c.CallTimeout:
		return bad("ProbeTimeout", c.ProbeTimeout, "more than 0 and CallTimeout at most")
	case c.Replicas != 0 && c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5:
		return bad("Replicas", c.Replicas, "1, 3 or 5; 0 leaves what is there")
	}
	return nil
}
