// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tidemill/tidemill/internal/testenv"
)

// started is a fault that lasts.
type started struct {
	fault
	at      time.Time
	commits int
	end     func()
}

// over reports whether it has lasted as long as its plan says.
func (s *started) over(now time.Time, commits int) bool {
	lasted := now.Sub(s.at)
	return lasted >= s.Hold && (commits >= s.commits+s.For || lasted >= 4*s.Hold)
}

// errNotNow: what the fault needs isn't there at the moment.
var errNotNow = errors.New("not now")

// errNever: this machine can't have the fault.
var errNever = errors.New("not possible here")

// begin makes a fault happen. end is nil where nothing has to be undone.
func (r *rig) begin(f fault) (end func(), err error) {
	switch f.Kind {
	case store503, storeSlow, storeLost, storeRefuse:
		return r.breakStore(f), nil
	case stopLeader, killLeader, wipeNode:
		return r.breakNode(f)
	}
	m := r.target(f)
	if f.Kind == fullDisk && r.members[0].disk == nil {
		return nil, errNever
	}
	if m == nil {
		return nil, errNotNow
	}
	return r.breakWorker(f, m)
}

// target is the worker that a fault befalls: the one of the plan, or the next that no other
// fault has.
func (r *rig) target(f fault) *member {
	for i := range r.members {
		m := r.members[(f.Worker+i)%len(r.members)]
		if m.free() && !m.now.gone() {
			return m
		}
		if f.Kind == fullDisk {
			break
		}
	}
	return nil
}

func (r *rig) breakWorker(f fault, m *member) (end func(), err error) {
	w := m.now
	var undo func()
	who := fmt.Sprintf("worker %d (%s)", m.n, w.named())
	switch f.Kind {
	case killWorker:
		w.killed = true
		r.killed = append(r.killed, death{w.named(), time.Now()})
		w.signal(syscall.SIGKILL)
		r.note("%s: %s", f.Kind, who)
		return nil, nil
	case drainWorker:
		w.asked = true
		w.signal(syscall.SIGTERM)
		r.note("%s: %s", f.Kind, who)
		return nil, nil
	case freezeWorker:
		w.signal(syscall.SIGSTOP)
		undo = func() { w.signal(syscall.SIGCONT) }
	case cutWorker:
		m.setLinks(linkCut)
		undo = func() { m.setLinks(linkUp) }
	case muteWorker:
		m.setLinks(linkMute)
		undo = func() { m.setLinks(linkUp) }
	case clockJump:
		if err := m.setClock(f.Jump); err != nil {
			return nil, err
		}
		who += " by " + f.Jump.String()
		undo = func() {
			if err := m.setClock(0); err != nil {
				r.t.Error(err)
			}
		}
	case fullDisk:
		if err := m.disk.fill(); err != nil {
			_ = m.disk.empty()
			return nil, err
		}
		undo = func() {
			if err := m.disk.empty(); err != nil {
				r.t.Error(err)
			}
		}
	}
	m.befall = string(f.Kind)
	r.note("%s begins: %s", f.Kind, who)
	return func() {
		undo()
		m.befall = ""
		r.note("%s ends: worker %d", f.Kind, m.n)
	}, nil
}

// breakStore has the proxy misbehave. The requests that are befallen are drawn.
func (r *rig) breakStore(f fault) (end func()) {
	rng := rand.New(rand.NewPCG(r.seed, uint64(f.At)))
	chance := func(p float64) bool { return rng.Float64() < p } // the proxy asks one at a time
	in := testenv.HTTPFault{}
	switch f.Kind {
	case store503:
		in.Match = func(*http.Request) bool { return chance(0.05) }
		in.Do = testenv.Answer(http.StatusServiceUnavailable, "SlowDown")
	case storeSlow:
		in.Do = testenv.Delay(2 * time.Second)
	case storeLost:
		in.Match = func(q *http.Request) bool { return q.Method == http.MethodPut && chance(0.1) }
		in.Do = testenv.CutAfter()
	case storeRefuse:
		in.Match = func(q *http.Request) bool {
			return q.Method == http.MethodPut && strings.Contains(q.URL.Path, commitsPart)
		}
		in.Do = testenv.Answer(http.StatusForbidden, "AccessDenied")
	}
	remove := r.tap.proxy.Inject(in)
	r.note("%s begins", f.Kind)
	return func() {
		n := remove()
		r.report.StoreRequestsBroken += n
		r.note("%s ends: %d requests", f.Kind, n)
	}
}

// breakNode takes a server away, if the cluster can do without it.
func (r *rig) breakNode(f fault) (end func(), err error) {
	ctx := r.t.Context()
	if r.nodeDown != "" || r.monitor.healthy(ctx) != nil {
		return nil, errNotNow
	}
	leader, err := r.monitor.leader(ctx, jobsStream)
	if err != nil {
		return nil, errNotNow
	}
	i := slices.IndexFunc(r.nodes, func(n node) bool { return n.Name() == leader })
	if i < 0 {
		return nil, fmt.Errorf("%s leads %s, but is no node of ours", leader, jobsStream)
	}
	n := r.nodes[i]
	r.nodeDown = n.Name()
	r.timeElection(f.Kind, n.Name())
	switch f.Kind {
	case stopLeader:
		n.Stop()
	case killLeader:
		n.Kill()
	case wipeNode: // the leader too: that is the hardest
		r.note("%s: %s, which leads", f.Kind, n.Name())
		n.Wipe()
		r.nodeDown = ""
		r.note("%s: %s is back with nothing", f.Kind, n.Name())
		return nil, nil
	}
	r.note("%s begins: %s, which leads", f.Kind, n.Name())
	return func() {
		n.Start()
		r.nodeDown = ""
		r.note("%s ends: %s is back", f.Kind, n.Name())
	}, nil
}

// leaderTime is how long a cluster was without a leader.
type leaderTime struct {
	kind    kind
	began   time.Time
	seconds float64
	err     error
}

// timeElection measures, beside all else, how long it takes until somebody else leads.
func (r *rig) timeElection(k kind, went string) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	r.waiting++
	go func() {
		defer cancel()
		err := r.monitor.awaitLeaders(ctx, went)
		r.watched <- leaderTime{k, began, time.Since(began).Seconds(), err}
	}()
}
