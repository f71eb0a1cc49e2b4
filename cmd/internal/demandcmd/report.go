// SPDX-License-Identifier: Apache-2.0

package demandcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/tidemill/tidemill/cmd/internal/fleet"
	"github.com/tidemill/tidemill/queue"
)

// report is what is told. Its own numbers are the sums of the list.
type report struct {
	Slots int `json:"slots"`
	queue.Jobs
	Demands []demand `json:"demands"`
}

type demand struct {
	queue.Demand
	// WorkerSlots are those of workers that serve the pool and class now.
	WorkerSlots int `json:"worker_slots"`
}

// source is a queue that can tell its demand, and who is there to meet it.
type source interface {
	Backlog(ctx context.Context) ([]queue.Demand, error)
	Workers(ctx context.Context) ([]queue.Presence, error)
}

func look(ctx context.Context, q source) (report, error) {
	demands, err := q.Backlog(ctx)
	if err != nil {
		return report{}, err
	}
	workers, err := q.Workers(ctx)
	if err != nil {
		return report{}, err
	}
	list := make([]demand, len(demands))
	for i, d := range demands {
		list[i].Demand = d
		list[i].WorkerSlots = fleet.Slots(workers, d.Pool, d.Class)
	}
	return sum(list), nil
}

func sum(list []demand) report {
	r := report{Demands: list}
	for _, d := range list {
		r.Slots += d.Slots
		r.Waiting += d.Waiting
		r.InFlight += d.InFlight
		r.DueSoon += d.DueSoon
	}
	return r
}

// part is what is told of one pool, one class, or both; "" is any. The sums are 0 where
// there is none: a scaler has to be told so.
func (r report) part(pool string, class queue.Class) report {
	list := []demand{}
	for _, d := range r.Demands {
		if (pool == "" || d.Pool == pool) && (class == "" || d.Class == class) {
			list = append(list, d)
		}
	}
	return sum(list)
}

// metrics writes Prometheus's text format. Pools and classes need no quoting.
func (r report) metrics(w io.Writer) error {
	for _, m := range []struct {
		name, help string
		of         func(demand) int
	}{
		{"tidemill_demand_slots", "Slots that could be kept busy now.", func(d demand) int { return d.Slots }},
		{"tidemill_demand_waiting", "Trials that wait for a slot.", func(d demand) int { return d.Waiting }},
		{"tidemill_demand_in_flight", "Trials that run.", func(d demand) int { return d.InFlight }},
		{"tidemill_demand_due_soon", "Trials that are delayed, for a minute at most.", func(d demand) int { return d.DueSoon }},
		{"tidemill_worker_slots", "Slots of workers that serve the pool and class.", func(d demand) int { return d.WorkerSlots }},
	} {
		if _, err := fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.help, m.name); err != nil {
			return err
		}
		for _, d := range r.Demands {
			if _, err := fmt.Fprintf(w, "%s{pool=%q,class=%q} %d\n", m.name, d.Pool, string(d.Class), m.of(d)); err != nil {
				return err
			}
		}
	}
	return nil
}
