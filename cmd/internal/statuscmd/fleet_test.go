// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/queue"
)

// What an open run has to do, and nobody has, is told with what to do.
func TestTheQueueLostARun(t *testing.T) {
	serves := queue.Presence{Worker: "w", Pool: "default", Offers: []string{"subprocess"}, Slots: 1}
	works := serves
	works.Running = []queue.Running{{Run: "r", TaskID: "a", TrialID: "t", Attempt: 1, Phase: "agent", Since: time.Now()}}
	const text = "the queue has none of the 3 trials that aren't done: it lost them, or their submission goes on; tidemill resume r puts them in"
	for name, c := range map[string]struct {
		queue  *queue.Stats
		worker queue.Presence
		change func(*Description)
		want   bool
	}{
		"unknown there":  {nil, serves, nil, true},
		"nothing waits":  {&queue.Stats{}, serves, nil, true},
		"something does": {&queue.Stats{Delayed: 1}, serves, nil, false},
		"somebody works": {&queue.Stats{}, works, nil, false},
		"it is paused":   {nil, serves, func(d *Description) { d.State = producer.StatePaused }, false},
		"it is done":     {nil, serves, func(d *Description) { d.Done = d.Trials }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := open()
			if c.change != nil {
				c.change(d)
			}
			n := news{fleet: &crew{workers: []queue.Presence{c.worker}, stats: func(context.Context, string) (*queue.Stats, error) { return c.queue, nil }}}
			if err := d.attach(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(d.HeldUp, text) != c.want || c.want && d.ETA != 0 {
				t.Errorf("held up: %q, eta %v", d.HeldUp, d.ETA)
			}
			d.says(t, "tidemill resume r puts them in", c.want)
		})
	}
}

// fleetOf is the news of a queue with these workers and so many jobs in flight.
func fleetOf(inFlight int, workers ...queue.Presence) news {
	return news{fleet: &crew{workers: workers, stats: func(context.Context, string) (*queue.Stats, error) {
		return &queue.Stats{InFlight: inFlight}, nil
	}}}
}

// open is a run of which a trial was done a moment ago, and others wait.
func open() *Description {
	d := described(1)
	d.State, d.PerMinute, d.asks = producer.StateOpen, 3, queue.Run{ID: "r", Pool: "default", Class: "subprocess"}
	return d
}

// A speed of the past says nothing of when a run is done that nobody goes on with.
func TestNoETAWhereNothingCanBegin(t *testing.T) {
	serves := queue.Presence{Worker: "w", Pool: "default", Offers: []string{"subprocess"}, Slots: 1}
	refuses := serves
	refuses.Refuses = map[string]string{"r": "has no API_KEY"}
	for name, c := range map[string]struct {
		news   news
		change func(*Description)
		eta    bool
		text   string
	}{
		"a worker serves it":        {news: fleetOf(1, serves), eta: true, text: `(?m)^eta +1m$`},
		"no queue was asked":        {eta: true, text: `(?m)^eta +1m$`},
		"nobody is there":           {news: fleetOf(1), text: `(?m)^eta +-$`},
		"the only worker refuses":   {news: fleetOf(1, refuses), text: `(?m)^eta +-$`},
		"paused, where it all runs": {news: news{owner: owner()}, change: func(d *Description) { d.State = producer.StatePaused }},
		"going, where it all runs":  {news: news{owner: owner()}, eta: true, text: `(?m)^eta +\d`},
	} {
		t.Run(name, func(t *testing.T) {
			d := open()
			if c.change != nil {
				c.change(d)
			}
			if err := d.attach(t.Context(), c.news); err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(d)
			if err != nil || strings.Contains(string(body), `"eta_s"`) != c.eta {
				t.Errorf("an eta is to be there: %v: %s, %v", c.eta, body, err)
			}
			if c.text == "" {
				d.says(t, `(?m)^eta`, false)
			} else {
				d.says(t, c.text, true)
			}
		})
	}
}

// owner is a process that has worked on the run for a minute.
func owner() *progress.Snapshot {
	return &progress.Snapshot{Slots: 1, Since: time.Now().Add(-time.Minute), Runs: map[string]progress.Counts{
		"r": {Total: 4, Done: 2, Passed: 2},
	}}
}

// What the queue has given out and nobody runs is told apart from what runs.
func TestInFlightIsNotRunning(t *testing.T) {
	run := func(n int) queue.Presence {
		return queue.Presence{Worker: "w", Pool: "default", Offers: []string{"subprocess"}, Slots: 400, Running: slices.Repeat([]queue.Running{{Run: "r", TrialID: "t", Phase: "agent"}}, n)}
	}
	for words, n := range map[string]news{
		`2 in flight \(0 of them running\), 0 dead`:   fleetOf(2),
		`3 in flight \(2 of them running\), 0 dead`:   fleetOf(3, run(2)),
		"2 in flight, 0 dead":                         fleetOf(2, run(2)),
		"1 in flight, 0 dead":                         fleetOf(1, run(2)),                  // one has ended since
		"300 in flight, 0 dead":                       fleetOf(300, run(queue.MaxRunning)), // which is all that it may name
		`300 in flight \(255 of them running\), 0 de`: fleetOf(300, run(queue.MaxRunning-1)),
	} {
		d := open()
		if err := d.attach(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		d.says(t, `(?m)^queue +0 waiting, 0 delayed, `+words, true)
	}
}
