// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Queue is everything that an implementation offers. Take the smallest role
// that will do.
//
// All methods may be called from many goroutines at once. Every method honours
// its context and returns within a bounded time after it ends; none waits without
// end on a broker that is away: it returns [ErrUnreachable] instead.
type Queue interface {
	Runs
	Publisher
	Consumer
	Inspector
	// Close gives everything back that this value holds. Live leases of this
	// value end unsaid, as if their holder had died. Close is idempotent.
	Close() error
}

// Runs opens, closes and steers runs.
type Runs interface {
	// OpenRun makes the run known. Opening a run that is open already updates
	// its priority, limits and paused flag; its pool and class can't change
	// ([ErrConflict]). Nothing of the run is delivered before it is open.
	OpenRun(ctx context.Context, run Run) error
	// PauseRun stops deliveries of the run. What is in flight goes on.
	PauseRun(ctx context.Context, run string) error
	// ResumeRun undoes PauseRun. Waiting workers notice within a second.
	ResumeRun(ctx context.Context, run string) error
	// PurgeRun drops every live job of the run, delayed ones too, and revokes
	// the leases of what is in flight ([Lease.Revoked]). The run stays open.
	// It returns how many waiting jobs were dropped, as well as it can tell.
	PurgeRun(ctx context.Context, run string) (int, error)
	// CloseRun forgets a run that has no live jobs, its dead letters excepted. It
	// reports whether the run is closed now; one that isn't open is.
	//
	// settled is asked whether nothing is left to do. A run that somebody opens from
	// then on stays open, and keeps all that is published to it: so a decision that is
	// written before OpenRun is either seen by settled, or not undone.
	CloseRun(ctx context.Context, run string, settled func(ctx context.Context) (bool, error)) (closed bool, err error)
}

// Published says what became of a batch.
type Published struct {
	// Stored jobs are new in the queue.
	Stored int
	// Skipped jobs were not stored: their id is known (deduplication), or a job
	// of the same trial is live.
	Skipped int
}

// Publisher puts jobs in.
type Publisher interface {
	// Publish stores jobs of one open run and returns when they are durable, as
	// far as the implementation promises durability. A batch that returned an
	// error may have been stored in part: publish it again, which is safe. It may be
	// of any length; implementations split it.
	// A job that is not valid refuses the whole batch before anything is stored.
	Publish(ctx context.Context, run string, jobs []Job) (Published, error)
}

// Request says what a free slot can do.
type Request struct {
	// Worker names the asking worker process; it is random per process.
	Worker string
	// Pool whose runs it serves. Defaults to [DefaultPool].
	Pool string
	// Offers are the needs that it can serve, see [Class.ServedBy].
	Offers []string
	// Except are runs that it can't serve although it serves their pool and class.
	Except []string
	// Nonce is the proof that the holder speaks for this delivery: new for every
	// request, at least 16 random hex characters.
	Nonce string
}

// WithDefaults returns a completed copy.
func (r Request) WithDefaults() Request {
	r.Pool = cmp.Or(r.Pool, DefaultPool)
	return r
}

var nonceRE = regexp.MustCompile(`^[0-9a-f]{16,128}$`)

// Serves reports whether the request may be given jobs of a run. Call it on a completed
// request.
func (r Request) Serves(run Run) bool {
	return run.Pool == r.Pool && run.Class.ServedBy(r.Offers...) && !slices.Contains(r.Except, run.ID)
}

// Validate reports the first field that is wrong. Call it on a completed request.
func (r Request) Validate() error {
	switch {
	case r.Worker == "":
		return fmt.Errorf("request: worker is empty: want a name that is random per process")
	case !nameRE.MatchString(r.Pool):
		return fmt.Errorf("request of worker %s: pool %q: want [a-z0-9][a-z0-9-]{0,62}", r.Worker, r.Pool)
	case len(r.Offers) == 0:
		return fmt.Errorf("request of worker %s: offers are empty: want at least a runtime type", r.Worker)
	case !nonceRE.MatchString(r.Nonce):
		return fmt.Errorf("request of worker %s: nonce of %d characters: want 16 to 128 of 0-9 a-f", r.Worker, len(r.Nonce))
	}
	return nil
}

// Consumer hands jobs out.
type Consumer interface {
	// Lease waits for a job and leases it: one call per free slot, never a
	// prefetch. It returns ctx's error when ctx ends first. Jobs of one run come
	// in the order in which they were published, redeliveries excepted; runs take
	// turns by priority, so that a small run never waits behind a large one.
	Lease(ctx context.Context, req Request) (Lease, error)
}

// Fence grows with every lease of the same trial, over restarts and rebuilds of
// the queue too. Whoever holds the larger fence is the newer holder.
type Fence uint64

// Lease is the proof that its holder may speak for a trial.
//
// Order of calls: any number of Extend, then exactly one of Done, Retry, HandBack, Bury
// or Abandon. The first of these that returns nil ends the lease; after that every
// call but Abandon returns [ErrLost]. After ErrLost say nothing more: the
// implementation sends nothing on behalf of a lost lease.
type Lease interface {
	Job() Job
	Fence() Fence
	// TTL is how long the lease lives without Extend. Extend it about every third
	// of that.
	TTL() time.Duration
	// Extend renews the lease. [ErrLost] means that somebody else holds it or
	// that the job is gone: stop the trial and say nothing. [ErrUnreachable]
	// means that nobody knows: go on and try again.
	Extend(ctx context.Context) error
	// Revoked is closed when the queue learns by itself that this lease is over:
	// its run was purged or closed, or somebody else took it over. It may stay
	// open although the lease is lost; Extend tells for certain.
	Revoked() <-chan struct{}
	// Done removes the job. It returns nil only if the queue confirmed it.
	Done(ctx context.Context) error
	// Retry ends this lease and has the same trial and epoch delivered again,
	// with the next release number and the given body, not before after has passed.
	// A nil body keeps the old one. It survives a restart of the broker. Delayed
	// jobs take no place in MaxInFlight.
	Retry(ctx context.Context, after time.Duration, body []byte) error
	// HandBack ends this lease and has the same job, with the same release number,
	// delivered again at once to whoever asks: it keeps its place, which is before
	// what was published later and before what never was delivered.
	HandBack(ctx context.Context) error
	// Bury removes the job and keeps it as a dead letter with the reason.
	Bury(ctx context.Context, reason string) error
	// Abandon forgets the lease without telling anybody, as a crash would. The
	// job is delivered again when the lease runs out. It never fails and may be
	// called after anything.
	Abandon()
}

// Inspector tells operators and autoscalers what is there.
type Inspector interface {
	// ListRuns returns the open runs, sorted by id.
	ListRuns(ctx context.Context) ([]Run, error)
	// Stats counts the live jobs of an open run, as they were a moment ago: what was just
	// published or done may not be in it yet.
	Stats(ctx context.Context, run string) (Stats, error)
	// DeadLetters returns up to limit of the run's dead letters, oldest first.
	// A limit of 0 or less means all.
	DeadLetters(ctx context.Context, run string, limit int) ([]DeadLetter, error)
	// Backlog returns the demand of each pool and class that has an open run, sorted by
	// them. It is cheap enough to be asked for every few seconds, and may be off by what
	// moves meanwhile.
	Backlog(ctx context.Context) ([]Demand, error)
	// Holder returns the worker whose lease of a trial has not run out, as it called
	// itself in its [Request], and "" when there is none: nobody leased the trial, the
	// lease ended, or the run is not open. It changes nothing. A queue that can't tell,
	// because it doesn't answer or its holders may not have come back to it yet, says
	// [ErrUnreachable]. What is true now may have changed when the answer is read.
	Holder(ctx context.Context, run, trial string) (worker string, err error)
}
