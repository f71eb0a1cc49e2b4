// SPDX-License-Identifier: Apache-2.0

package debugcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/kept"
	"github.com/tidemill/tidemill/cmd/internal/live"
	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/runtimes"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/cmd/internal/version"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/worker"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/queue"
	"github.com/tidemill/tidemill/queue/memqueue"
	"github.com/tidemill/tidemill/runtime"
)

// keepFor is how long a kept sandbox is safe from sweeps.
const keepFor = 7 * 24 * time.Hour

// session is one execution of the command.
type session struct {
	options
	log      zerolog.Logger
	run      *manifest.Run
	target   target
	dir      *local.Dir
	store    bundle.Store
	identity bundle.StoreRecord
	runtimes map[string]runtime.Runtime
	trialID  string
	runID    string
	screen   *screen
}

func (o options) execute(cmd *cobra.Command, file, word string) (err error) {
	ctx := cmd.Context()
	s := &session{options: o}
	if s.log, err = o.log.Logger(cmd.ErrOrStderr()); err != nil {
		return err
	}
	files, load, err := o.vars.LoadRuns(file)
	if err != nil {
		return err
	}
	s.run = files[0].Runs[0]
	if n := len(files[0].Runs); n > 1 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s makes %d runs; this is the first of them\n", file, n)
	}
	if where := stores.Named(s.run); where != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "storage.artifacts names the store %s; a debugged trial is no result and stays in %s\n", where, o.data)
	}
	if s.target, err = find(ctx, s.run, load, word); err != nil {
		return err
	}
	o.narrow(s.run, s.target)
	if s.dir, err = local.Acquire(o.data, "tidemill debug"); err != nil {
		return local.Explain(err, "data")
	}
	defer app.Closing(&err, s.dir.Release)
	if err := s.dir.Reset(); err != nil {
		return err
	}
	defer app.Closing(&err, s.dir.Clear)
	if s.store, s.identity, err = stores.OpenForWriting(ctx, s.dir.Store()); err != nil {
		return err
	}
	defer app.Closing(&err, s.store.Close)
	s.screen = newScreen(cmd.ErrOrStderr())
	if err := s.admit(ctx); err != nil {
		return err
	}
	defer app.Closing(&err, func() error { return runtimes.Close(s.runtimes) })
	worked := s.work(ctx, load)
	if err := s.screen.end(); err != nil && worked == nil {
		worked = err
	}
	return s.verdict(context.WithoutCancel(ctx), cmd.OutOrStdout(), worked)
}

// admit refuses what could not run here, or could not be kept.
func (s *session) admit(ctx context.Context) (err error) {
	kind := s.run.Runtime.Type
	c := runtimes.Config{Dir: s.dir.Work(), StoreUUID: s.identity.StoreUUID, Hide: hidden(s.dir.Store(), s.run)}
	s.runtimes, err = runtimes.ForRun(c, s.run, s.run.File)
	if err != nil {
		return err
	}
	refuse := func(err error) error { return errors.Join(err, runtimes.Close(s.runtimes)) }
	if _, ok := s.runtimes[kind].(runtime.Attacher); s.keep && !ok {
		return refuse(app.Usage(app.Hint(fmt.Errorf("--keep: runtime %s can't keep sandboxes", kind), "leave --keep out")))
	}
	if err := runtimes.AdmitHere(ctx, s.runtimes, s.run, s.identity.StoreUUID); err != nil {
		return refuse(err)
	}
	// The lock proves that whoever left a sandbox here is gone.
	if _, err := runtimes.Sweep(ctx, s.runtimes, s.identity.StoreUUID, s.log); err != nil {
		return refuse(err)
	}
	return nil
}

// hidden are the directories that the agent must not see: the results that the run file
// names too, as in a run.
func hidden(own string, run *manifest.Run) []string {
	if dir, ok := stores.Directory(stores.Named(run)); ok {
		return []string{own, dir}
	}
	return []string{own}
}

// only publishes the trial that is wanted, out of those that its index makes.
type only struct {
	producer.Queue
	trialID string
}

func (q only) Publish(ctx context.Context, run string, jobs []queue.Job) (queue.Published, error) {
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j queue.Job) bool { return j.Trial != q.trialID })
	return q.Queue.Publish(ctx, run, jobs)
}

// work runs the trial. It returns nil when there is a result.
func (s *session) work(ctx context.Context, load manifest.LoadOptions) error {
	q, err := memqueue.New(memqueue.Config{})
	if err != nil {
		return err
	}
	defer q.Close()
	if err := s.submit(ctx, q, load); err != nil {
		return err
	}
	tracker := progress.NewTracker(1)
	tracker.Plan(s.runID, 1, 0)
	w, ended, err := s.worker(q, tracker)
	if err != nil {
		return err
	}
	shown := &live.Server{Find: w.Attempt}
	stopServing, err := s.dir.Serve(tracker.Snapshot, shown.Routes()...)
	if err != nil {
		s.log.Warn().Err(err).Msg("tidemill exec and logs -f can't reach this process")
	} else {
		defer shown.Wait()
		defer stopServing()
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var workErr error
	wg.Go(func() { workErr = w.Run(serving) })
	var last *worker.Event
	select {
	case e := <-ended:
		last = &e
	case <-w.Stopped():
	}
	stop()
	wg.Wait()
	if ctx.Err() != nil && (last == nil || last.Kind != worker.Committed) {
		return context.Cause(ctx)
	}
	if last == nil || last.Kind == worker.Committed || last.Kind == worker.Found {
		return workErr
	}
	return errors.Join(fmt.Errorf("the trial has no result: %s", last.Why), workErr)
}

// worker makes one for the trial. ended gets the first event that the trial ends with.
func (s *session) worker(q queue.Queue, tracker *progress.Tracker) (w *worker.Worker, ended chan worker.Event, err error) {
	ended = make(chan worker.Event, 1)
	c := worker.Config{
		Slots: 1, Store: s.store, StoreUUID: s.identity.StoreUUID, Queue: q, Runtimes: s.runtimes,
		Dir: s.dir.Worker(), Version: version.String(), Log: s.log,
		OnEvent: func(e worker.Event) {
			tracker.Observe(e)
			s.screen.observe(e, w.Attempt(e.TrialID))
			if e.Kind != worker.Started && e.Kind != worker.Phase {
				select {
				case ended <- e:
				default: // the first end counts
				}
			}
		},
	}
	if s.keep {
		c.Keep = keepFor
	}
	w, err = worker.New(c)
	return w, ended, err
}

// submit writes a run of the one trial into the store.
func (s *session) submit(ctx context.Context, q producer.Queue, load manifest.LoadOptions) (err error) {
	d, err := producer.NewDraft(ctx, s.run, load, s.dir.Temp(), runtimes.TaskCheck(s.runtimes, s.run))
	if err != nil {
		return app.InputError(ctx, err)
	}
	defer app.Closing(&err, d.Close)
	if s.runID, err = s.freshID(ctx); err != nil {
		return err
	}
	s.trialID = bundle.TrialID(s.identity.StoreUUID, s.runID, s.target.task, s.target.index)
	p := producer.Producer{
		Store: s.store, StoreUUID: s.identity.StoreUUID, Queue: only{q, s.trialID}, Log: s.log,
		Version: version.String(), Pool: queue.DefaultPool,
	}
	if _, err := p.Submit(ctx, d, producer.Options{RunID: s.runID}); err != nil {
		return err
	}
	s.screen.begin(s)
	return nil
}

// freshID is a run id that isn't taken: two may be debugged within a second.
func (s *session) freshID(ctx context.Context) (string, error) {
	now := time.Now()
	for n := 1; ; n++ {
		id := producer.NewRunID(s.run.Name, now, n)
		rec, err := trials.ExistingRun(ctx, s.store, id)
		if rec == nil || err != nil {
			return id, err
		}
	}
}

// noteKept writes down that the sandbox is there, if it is.
func (s *session) noteKept(ctx context.Context) (*kept.Sandbox, error) {
	box := s.screen.sandbox()
	if !s.keep || box == nil {
		return nil, nil
	}
	list, err := s.runtimes[s.run.Runtime.Type].List(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(r runtime.Resource) bool { return r.Handle == box.Handle() && r.Kept }) {
		return nil, nil
	}
	k := kept.Sandbox{
		TrialID: s.trialID, RunID: s.runID, TaskID: s.target.task, TrialIndex: s.target.index,
		Handle: box.Handle(), ExpiresAt: box.ExpiresAt(), Workdir: box.Env()["TIDEMILL_WORKDIR"], Env: box.Env(),
	}
	return &k, kept.Note(s.data, k)
}
