// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/fleet"
	"github.com/tidemill/tidemill/cmd/internal/live"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/queues"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/natsqueue"
)

// sources are who can tell what is going on: the process that works a data directory, and
// the queue of a fleet.
type sources struct {
	where string
	queue *natsqueue.Queue // nil without
}

// connect opens what there is.
func connect(ctx context.Context, store bundle.Store, where string, flags *queues.Flags, stderr io.Writer) (*sources, error) {
	q, err := fleet.Dial(ctx, store, flags, stderr)
	return &sources{where: where, queue: q}, err
}

// isIdle reports whether a store is the directory of one process that has gone: what is
// nobody's directory may be worked by a fleet.
func isIdle(where string) bool {
	dir, ok := stores.Directory(where)
	if !ok {
		return false
	}
	_, err := os.Stat(local.HiddenOf(dir))
	return err == nil
}

func (s *sources) close() error {
	if s.queue == nil {
		return nil
	}
	return s.queue.Close()
}

// news is what the sources say at one time. Both may be nil.
type news struct {
	owner *progress.Snapshot
	fleet *crew
	// idle: the directory was worked by one process, and is by none now.
	idle bool
}

// crew is what the queue says.
type crew struct {
	workers []queue.Presence
	stats   func(ctx context.Context, run string) (*queue.Stats, error)
}

// count asks what the queue has of a run, once: so it is from before whatever is asked next.
func (f *crew) count(ctx context.Context, run string) error {
	st, err := f.stats(ctx, run)
	f.stats = func(context.Context, string) (*queue.Stats, error) { return st, nil }
	return err
}

func (s *sources) ask(ctx context.Context) (n news, err error) {
	if n.owner, err = live.Snapshot(ctx, s.where); err != nil || n.owner != nil {
		return n, err
	}
	if s.queue == nil {
		n.idle = isIdle(s.where)
		return n, nil
	}
	workers, err := s.queue.Workers(ctx)
	if err != nil {
		return n, err
	}
	n.fleet = &crew{workers: workers, stats: func(ctx context.Context, run string) (*queue.Stats, error) {
		st, err := s.queue.Stats(ctx, run)
		if errors.Is(err, queue.ErrUnknownRun) {
			return nil, nil
		}
		return &st, err
	}}
	return n, nil
}

// works reports whether somebody works on a run now.
func (n news) works(run string) bool {
	if n.owner != nil {
		_, ok := n.owner.Runs[run]
		return ok
	}
	if n.fleet == nil {
		return false
	}
	return slices.ContainsFunc(n.fleet.workers, func(w queue.Presence) bool {
		return slices.ContainsFunc(w.Running, func(r queue.Running) bool { return r.Run == run })
	})
}

// look says why no worker takes what waits of an open run, where the queue was asked.
func (s *summary) look(n news) {
	if n.fleet == nil || s.asks.ID == "" || s.State != producer.StateOpen && s.State != stateRunning {
		return
	}
	s.HeldUp = fleet.HeldUp(n.fleet.workers, s.asks)
}

// member is a worker that serves the run's pool.
type member struct {
	Worker   string    `json:"worker"`
	Pool     string    `json:"pool"`
	Offers   []string  `json:"offers"`
	Slots    int       `json:"slots"`
	Busy     int       `json:"busy"`
	Version  string    `json:"version,omitempty"`
	Since    time.Time `json:"since"`
	Draining bool      `json:"draining,omitempty"`
	// Holds are why it takes no work though it has a free slot.
	Holds []string `json:"holds,omitempty"`
	// Refuses is why it takes none of this run's trials.
	Refuses string `json:"refuses,omitempty"`
	// Running is how many trials of this run it works on.
	Running int `json:"running"`
	// Unnamed: it works on more than it names.
	Unnamed bool `json:"-"`
}

// describe is what a fleet does for a run: workers of its pool, and what they run of it.
func (f *crew) describe(ctx context.Context, run, pool string) (*activity, error) {
	a := &activity{Running: []progress.Running{}, Uploading: []progress.Running{}}
	for _, w := range f.workers {
		m := member{
			Worker: w.Worker, Pool: w.Pool, Offers: w.Offers, Slots: w.Slots, Busy: w.Busy,
			Version: w.Version, Since: w.Since, Draining: w.Draining, Holds: w.Holds, Refuses: w.Refuses[run],
			Unnamed: len(w.Running) >= queue.MaxRunning,
		}
		for _, r := range w.Running {
			if r.Run != run {
				continue
			}
			m.Running++
			if r.Phase == worker.PhaseUpload {
				a.Uploading = append(a.Uploading, progress.Running(r))
			} else {
				a.Running = append(a.Running, progress.Running(r))
			}
		}
		if w.Pool == pool || m.Running > 0 {
			a.Workers = append(a.Workers, m)
			a.Slots += w.Slots
		}
	}
	for _, list := range [][]progress.Running{a.Running, a.Uploading} {
		slices.SortFunc(list, func(x, y progress.Running) int {
			return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.TrialID, y.TrialID))
		})
	}
	var err error
	a.Queue, err = f.stats(ctx, run)
	return a, err
}
